// Rejects orders that count nothing and passes the others on. Run by greenroom's `exec` handler.
import { createInterface } from "node:readline";

for await (const line of createInterface({ input: process.stdin })) {
  const { token, event } = JSON.parse(line);
  const answer = event.data.count > 0
    ? { token, outcome: "pass" }
    : { token, outcome: "reject", error: `${event.id} counts ${event.data.count}` };
  console.log(JSON.stringify(answer));
}
