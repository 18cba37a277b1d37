"""Adds each line of orders.ndjson to the stream orders. `redis-cli XADD orders '*' data EVENT` does so for one."""
import pathlib, socket, os, urllib.parse

url = urllib.parse.urlsplit(os.environ.get("REDIS", "redis://localhost:6379"))
server = socket.create_connection((url.hostname, url.port or 6379))
answers = server.makefile("rb")

def ask(*words):
    parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
    server.sendall(b"*%d\r\n%s" % (len(words), b"".join(parts)))
    answer = answers.readline()
    return answers.readline() if answer.startswith(b"$") else answer

for line in pathlib.Path(__file__).with_name("orders.ndjson").read_bytes().splitlines():
    print(ask(b"XADD", b"orders", b"*", b"data", line).decode().strip())
