#!/bin/sh
# acp.sh speaks the Agent Client Protocol: in each turn it asks once whether it may run "make", and
# ends the turn after the answer; when a message says "read it", it wants to read a file first, and
# continues after the reply; "list them" makes it list its runs into listed.txt, "eat it" fill the
# memory, "serve it" listen on port 3000 of a container, and "fetch HOST" fetch a page through its
# proxy, with "later" when the file go is there. It takes a message each time that it is written. It
# writes heard.txt about what it took.
field() { printf '%s' "$line" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }
say() { printf '{"jsonrpc":"2.0",%s}\n' "$1"; }
update() { say '"method":"session/update","params":{"sessionId":"s1","update":'"$1"'}'; }
work() {
	update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"I make "}}'
	update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"it."}}'
	say '"id":'"$asked"',"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"call","kind":"execute","title":"make"},"options":[{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}'
	asked=$((asked + 1))
}
fetch() {
	bash -c 'exec 3<>"/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}" && echo "connected for $0" &&
		printf "GET http://%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" "$0" >&3 && read -r _ status _ <&3; echo "fetched $0 $status"' "$1" >>heard.txt
}
asked=0 end=
while read -r line; do
	case $line in
	*'"method":"initialize"'*) say '"id":"'"$(field id)"'","result":{"protocolVersion":1}' ;;
	*'"method":"session/new"'*) say '"id":"'"$(field id)"'","result":{"sessionId":"s1"}' ;;
	*'"method":"session/prompt"'*)
		turn=$(field id)
		echo "message $turn" >>heard.txt
		case $line in
		*'read it'*) say '"id":"file","method":"fs/read_text_file","params":{"sessionId":"s1","path":"/etc/hosts"}' ;;
		*'list them'*)
			agency ls >listed.txt 2>&1
			say '"id":"'"$turn"'","result":{"stopReason":"end_turn"}'
			;;
		*'fetch '*)
			case $line in *later*) until test -e go; do sleep 0.02; done ;; esac
			fetch "$(printf '%s' "$line" | sed -n 's/.*fetch \([^" ]*\).*/\1/p')"
			say '"id":"'"$turn"'","result":{"stopReason":"end_turn"}'
			;;
		*'serve it'*)
			nc -ll -p 3000 -e cat <&- >/dev/null 2>&1 &
			say '"id":"'"$turn"'","result":{"stopReason":"end_turn"}'
			;;
		*'eat it'*) end='exec tail /dev/zero' ;;
		*) work ;;
		esac
		;;
	*'"code":-32601'*)
		echo "file $(field message)" >>heard.txt
		work
		;;
	*'"outcome":{"optionId":'*)
		echo "answer $(field optionId)" >>heard.txt
		update '{"sessionUpdate":"tool_call_update","toolCallId":"call","status":"completed"}'
		say '"id":"'"$turn"'","result":{"stopReason":"end_turn"}'
		;;
	*'"outcome":{"outcome":"cancelled"'*) echo cancelled >>heard.txt ;;
	*'"method":"session/cancel"'*) say '"id":"'"$turn"'","result":{"stopReason":"cancelled"}' ;;
	*) say '"id":"'"$(field id)"'","error":{"code":-32601,"message":"Method not found"}' && $end ;;
	esac
done
