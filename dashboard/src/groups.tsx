// Dead letters counted by what they failed of: a row for each group of errors.

import { bytes, count, moment, words } from "./format";
import { at, go } from "./place";
import type { LetterGroups } from "./types";

/** The largest groups; the others are found with filters. */
const FEW = 6;

export function Groups({ groups, searched_bytes }: LetterGroups) {
  const chosen = at("group");
  // One group says no more than the list does.
  if (groups.length < 2 && chosen === "") return null;
  return (
    <>
      <div class="scroll">
        <table class="groups">
          <caption>By error{searched_bytes ? `, of the newest ${bytes(searched_bytes)}` : ""}</caption>
          <thead>
            <tr><th class="number">Letters</th><th>Last</th><th>Reason</th><th>Handler</th><th>Error of the newest</th></tr>
          </thead>
          <tbody>
            {groups.slice(0, FEW).map((group) => {
              const isChosen = chosen !== "" && chosen === group.name;
              return (
                <tr key={group.name} class={isChosen ? "chosen" : ""}>
                  <td class="number">
                    <button
                      type="button"
                      class="plain link"
                      aria-pressed={isChosen}
                      aria-label={`only the ${count(group.letters)} letters with: ${group.error}`}
                      onClick={() => go({ group: isChosen ? "" : (group.name ?? "") })}
                    >
                      {count(group.letters)}
                    </button>
                  </td>
                  <td class="when">{moment(group.last) ?? "–"}</td>
                  <td>{words(group.reason)}</td>
                  <td>{group.handler ?? "–"}</td>
                  <td class="error-text" title={group.error}>{group.error}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {groups.length > FEW && <p class="faint">and {count(groups.length - FEW)} smaller groups</p>}
    </>
  );
}
