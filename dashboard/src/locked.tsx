// What is shown where a token is needed.

import { useState } from "preact/hooks";
import { store } from "./store";

export function Locked({ wrong }: { wrong: boolean }) {
  const [typed, type] = useState("");
  return (
    <form
      class="locked card"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed !== "") store.unlock(typed);
      }}
    >
      <h1>This greenroom asks for a token</h1>
      <p>It is <code>admin.token</code> of its configuration, or <code>admin.read_token</code> to look and change nothing. This tab keeps it until it is closed.</p>
      <label for="token">Token</label>
      <div class="line">
        <input id="token" type="password" autocomplete="off" autofocus value={typed} aria-invalid={wrong} onInput={(event) => type(event.currentTarget.value)} />
        <button type="submit" class="act main" disabled={typed === ""}>Show it</button>
      </div>
      {wrong && <p class="error" role="alert">This token is wrong.</p>}
    </form>
  );
}
