"""Makes the stream ORDERS, and publishes each line of orders.ndjson to orders.SUBJECT.placed. The `nats` command does both too."""
import json, os, pathlib, socket

host, port = os.environ.get("NATS", "localhost:4222").rsplit(":", 1)
server = socket.create_connection((host, int(port)))
answers = server.makefile("rb")

def ask(subject, payload):
    server.sendall(b"SUB answer 1\r\nUNSUB 1 1\r\nPUB %s answer %d\r\n%s\r\n" % (subject.encode(), len(payload), payload))
    for line in answers:
        if line.startswith(b"MSG"):
            answer = json.loads(answers.read(int(line.split()[-1])))
            answers.readline()
            return answer

server.sendall(b'CONNECT {"verbose":false}\r\n')
print(ask("$JS.API.STREAM.CREATE.ORDERS", b'{"name":"ORDERS","subjects":["orders.>"]}').get("error", "the stream is there"))
for line in pathlib.Path(__file__).with_name("orders.ndjson").read_bytes().splitlines():
    print(ask(f"orders.{json.loads(line)['subject']}.placed", line))
