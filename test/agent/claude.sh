#!/bin/sh
# claude.sh speaks the control protocol of Claude Code: it takes each message, asks once whether it may
# run "make", and rests after the answer; when a message says "read it", it makes a request of another
# kind first, and continues after the reply; when its task says "flood it", it says 9 MB before it asks.
# A message that begins with "later" stays in its queue. It takes every model and permission mode but
# bypassPermissions. It writes work.txt first, and heard.txt about what it took.
case " $* " in
*" --input-format stream-json "*) ;;
*) echo '2.1.329 (Claude Code)'; exit ;;
esac
field() { printf '%s' "$line" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }
echo precious >work.txt
while read -r line; do
	case $line in
	*'"subtype":"initialize"'*)
		echo '{"type":"system","subtype":"init","session_id":"c0ffee00-0000-4000-8000-000000000001","model":"scripted"}'
		echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"$(field request_id)"'","response":{"current_permission_mode":"default","models":[{"value":"small"},{"value":"large"}]}}}'
		;;
	*'"model":"'*'"subtype":"set_model"'* | *'"mode":"'*'"subtype":"set_permission_mode"'*)
		echo "set $(field model)$(field mode)" >>heard.txt
		case $line in
		*bypassPermissions*) echo '{"type":"control_response","response":{"subtype":"error","request_id":"'"$(field request_id)"'","error":"not launched with it"}}' ;;
		*) echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"$(field request_id)"'","response":{"model":"'"$(field model)"'","mode":"'"$(field mode)"'"}}}' ;;
		esac
		;;
	*'"subtype":"cancel_async_message"'*)
		echo "cancelled $(field message_uuid)" >>heard.txt
		echo '{"type":"control_response","response":{"subtype":"success","request_id":"'"$(field request_id)"'","response":{"cancelled":true}}}'
		;;
	*'"content":"later'*) echo '{"type":"command_lifecycle","command_uuid":"'"$(field uuid)"'","state":"queued"}' ;;
	*'"type":"user"'*)
		id=$(field uuid)
		grep -qx "message $id" heard.txt 2>/dev/null || {
			echo "message $id" >>heard.txt
			echo '{"type":"user","isReplay":true,"uuid":"'"$id"'","message":{"role":"user","content":""}}'
			echo '{"type":"system","subtype":"session_state_changed","state":"running"}'
			echo '{"type":"command_lifecycle","command_uuid":"'"$id"'","state":"started"}'
			case $line in *'read it'*)
				echo '{"type":"control_request","request_id":"file","request":{"subtype":"read_file","path":"/etc/hosts"}}'
				read -r line
				echo "file $(field error)" >>heard.txt
				;;
			esac
			grep -q 'flood it' .agency/prompt.md 2>/dev/null && yes '{"type":"keep_alive","pad":"------------------------------------------------------------"}' | head -n 100000
			echo '{"type":"control_request","request_id":"asks-'"$id"'","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"make"}}}'
		}
		;;
	*'"type":"control_response"'*)
		echo "answer $(field request_id) $(field behavior)" >>heard.txt
		case $line in *'"behavior":"deny"'*) echo "because $(field message)" >>heard.txt ;; esac
		echo "$line"
		echo '{"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"It is made."}]}}'
		echo '{"type":"result","subtype":"success","result":"It is made."}'
		echo '{"type":"system","subtype":"session_state_changed","state":"idle"}'
		;;
	esac
done
