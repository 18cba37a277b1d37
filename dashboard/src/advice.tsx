// What is worth changing: what is so, the figures, why it matters, and what to write or to ask for.

import { useState } from "preact/hooks";
import { token } from "./api";
import { several } from "./format";
import type { Finding } from "./types";
import { TONES } from "./problems";
import { Badge, Named, Section, toast } from "./ui";

/** So many are shown at first. */
const FEW = 4;

/** What the terminal is told. */
function command({ ask, command }: Finding): string {
  if (command !== null) return location.host === "127.0.0.1:7070" ? command : `${command} ${location.host}`;
  if (ask === null) return "";
  const [method, path] = ask.split(" ", 2) as [string, string];
  const how = method === "GET" ? "" : `-X ${method} `;
  const shown = token() === null ? "" : '-H "Authorization: Bearer $GREENROOM_ADMIN_TOKEN" ';
  return `curl ${how}${shown}'${location.origin}${path}'`;
}

function Copied({ text, name }: { text: string; name: string }) {
  const copy = () => {
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("not here"));
    copied.then(
      () => toast("well", "copied"),
      () => toast("bad", "this browser does not let the page copy: select the text"),
    );
  };
  return (
    <div class="copied">
      <pre tabIndex={0} aria-label={name}>{text}</pre>
      <button type="button" class="act" aria-label={`copy ${name}`} onClick={copy}>Copy</button>
    </div>
  );
}

function One({ finding }: { finding: Finding }) {
  const { severity, about, what, figures, why, change, lines, ask } = finding;
  return (
    <li>
      <div class="what">
        <Badge tone={TONES[severity]}>{severity}</Badge>
        <h3><Named text={what} /></h3>
        <span class="faint">{about}</span>
      </div>
      <p class="numbers"><Named text={figures} /></p>
      <p class="faint"><Named text={why} /></p>
      <p><Named text={change} /></p>
      {lines !== null && <Copied text={lines} name={`the lines for ${about}`} />}
      {ask !== null && <Copied text={command(finding)} name={`the command for ${about}`} />}
    </li>
  );
}

/** Nothing where there is nothing to say. */
export function Advice({ findings }: { findings: Finding[] }) {
  const [all, showAll] = useState(false);
  if (findings.length === 0) return null;
  const shown = all ? findings : findings.slice(0, FEW);
  return (
    <Section id="advice" title="Advice" note={several(findings.length, "finding")}>
      <ul class="advice">
        {shown.map((finding) => <One key={`${finding.about} ${finding.what}`} finding={finding} />)}
      </ul>
      {findings.length > FEW && (
        <button type="button" class="act" aria-expanded={all} onClick={() => showAll(!all)}>
          {all ? "Show fewer" : `Show all ${findings.length}`}
        </button>
      )}
    </Section>
  );
}
