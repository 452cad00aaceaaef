# try NAME COMMAND: a command that succeeds has found a way out.
try() {
  if (eval "$2") >/dev/null 2>&1 </dev/null; then echo "$1: OPEN"; else echo "$1: refused"; fi
}
proxy=${HTTP_PROXY#http://}
# ask TEXT: the first line that the proxy answers to a request.
ask() { exec 9<>"/dev/tcp/${proxy%:*}/${proxy#*:}" && printf "$1" >&9 && timeout 10 head -n 1 <&9; }
# kept WAY: a way of agency doctor --sandbox that is open.
kept() { agency probe "$TARGET" | tr '{' '\n' | grep "\"way\":\"$1\"" | grep -q '"refused":false'; }
page="http://127.0.0.1:$PORT/"
try 'connect by TCP' 'kept "connect by TCP"'
try 'connect by MPTCP' 'kept "connect by MPTCP"'
try 'exchange UDP' 'kept "exchange UDP"'
try 'connect to an abstract socket' 'kept "connect to an abstract socket"'
try 'connect by IPv6' 'exec 9<>/dev/tcp/::1/$PORT'
try 'ask a name server' 'exec 9<>/dev/udp/1.1.1.1/53 && printf x >&9'
try 'look up a name' 'getent hosts example.com'
try 'open a raw socket' 'ping -c 1 -W 1 1.1.1.1'
try 'open a packet socket' 'perl -e "socket(my \$s, 17, 3, 768) or exit 1"'
try 'open a netlink socket and add an address' 'ip addr add 10.9.9.9/8 dev lo'
try 'use vsock' 'perl -e "socket(my \$s, 40, 1, 0) or exit 1; connect(\$s, pack(q(SSLLx4), 40, 0, 22, 2)) or exit 1"'
try 'make a tunnel device' 'ls /dev/net/tun'
try 'enter the network of the machine' 'nsenter -n -t 1 true'
try 'have the socket of the wrapper' 'ls -l /proc/self/fd /proc/1/fd | grep "socket:"'
try 'tunnel to an address' 'ask "CONNECT 127.0.0.1:$PORT HTTP/1.1\r\n\r\n" | grep " 200 "'
try 'tunnel to an address in IPv6' 'ask "CONNECT [::1]:$PORT HTTP/1.1\r\n\r\n" | grep " 200 "'
try 'tunnel to an address in another form' 'ask "CONNECT 2130706433:$PORT HTTP/1.1\r\n\r\n" | grep " 200 "'
try 'tunnel to a name that is not on the list' 'ask "CONNECT example.com:443 HTTP/1.1\r\n\r\n" | grep " 200 "'
try 'tunnel to another port' 'ask "CONNECT web.localhost:22 HTTP/1.1\r\n\r\n" | grep " 200 "'
try 'tunnel to a name of this machine' 'ask "CONNECT here.localhost:443 HTTP/1.1\r\n\r\n" | grep " 200 "'
try 'ask for an address' 'ask "GET $page HTTP/1.1\r\nHost: web.localhost:$PORT\r\n\r\n" | grep " 200 "'
try 'ask for a name that is not on the list' 'ask "GET http://other.localhost:$PORT/ HTTP/1.1\r\nHost: web.localhost\r\n\r\n" | grep " 200 "'
try 'ask with the name in the header alone' 'ask "GET / HTTP/1.1\r\nHost: web.localhost:$PORT\r\n\r\n" | grep " 200 "'
# What the list names is there, so that the refusals are the sandbox's.
ask "GET http://web.localhost:$PORT/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" | grep -q ' 200 ' || echo 'web.localhost is not reached'
exit 0
