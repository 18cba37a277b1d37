// One box that finds: a pool, a handler, an input or an output by its name; a key; the dead
// letters of a key or of an event.

import { useState } from "preact/hooks";
import "./find.css";
import { inWords } from "./api";
import { findLetters } from "./letters";
import { goTo } from "./sections";
import { store } from "./store";
import { toast } from "./ui";
import { askWhy } from "./why";

interface Suggestion { text: string; kind: string; choose: () => void }

/** So many names are suggested. */
const FEW = 8;

function named(typed: string): Suggestion[] {
  const { sample } = store;
  if (sample === null) return [];
  const kinds: [string, string, { name: string }[]][] = [
    ["pool", "pools", sample.pools],
    ["handler", "handlers", sample.handlers],
    ["input", "inputs", sample.run.inputs],
    ["output", "outputs", sample.outputs],
  ];
  const all = kinds.flatMap(([kind, path, parts]) => parts.map(({ name }) => ({ text: name, kind, choose: () => goTo(`${path}.${name}`) })));
  const wanted = typed.toLowerCase();
  const found = all.filter(({ text }) => text.toLowerCase().includes(wanted));
  return found.sort((one, other) => rank(one, wanted) - rank(other, wanted)).slice(0, FEW);
}

/** A name that is typed in full comes first, then those that begin so. */
function rank({ text }: Suggestion, wanted: string): number {
  const name = text.toLowerCase();
  return name === wanted ? 0 : name.startsWith(wanted) ? 1 : 2;
}

function suggestions(typed: string): Suggestion[] {
  const key = { text: typed, kind: "key: where is it, and why?", choose: () => askWhy(typed) };
  const letters = { text: typed, kind: "dead letters with this id or key", choose: () => void findLetters(typed).catch((why: unknown) => toast("bad", inWords(why))) };
  return [...named(typed), key, letters];
}

export function Find() {
  const [typed, type] = useState("");
  const [moved, move] = useState<number | null>(null);
  const wanted = typed.trim();
  const all = wanted === "" ? [] : suggestions(wanted);
  // Free text is a key, unless it is the name of something.
  const usual = all[0]?.text === wanted ? 0 : all.findIndex(({ kind }) => kind.startsWith("key"));
  const active = Math.min(moved ?? usual, all.length - 1);
  const choose = (suggestion: Suggestion | undefined) => {
    if (!suggestion) return;
    type("");
    move(null);
    suggestion.choose();
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") move((active + 1) % all.length);
    else if (event.key === "ArrowUp") move((active + all.length - 1) % all.length);
    else if (event.key === "Enter") choose(all[active]);
    else if (event.key === "Escape") type("");
    else return;
    if (all.length > 0) event.preventDefault();
  };
  return (
    <div class="find">
      <input
        id="find"
        role="combobox"
        aria-label="find a key, an event or a name"
        aria-autocomplete="list"
        aria-expanded={all.length > 0}
        aria-controls={all.length > 0 ? "found" : undefined}
        aria-activedescendant={all.length > 0 ? `found-${active}` : undefined}
        placeholder="Find a key, event, pool…"
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={(event) => (type(event.currentTarget.value), move(null))}
        onKeyDown={pressed}
        onBlur={() => (type(""), move(null))}
      />
      {all.length > 0 && (
        <ul id="found" role="listbox" aria-label="what is found">
          {all.map((one, place) => (
            <li
              key={`${one.kind} ${one.text}`}
              id={`found-${place}`}
              role="option"
              aria-selected={place === active}
              // The box would lose the focus, and close, before the click.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => choose(one)}
            >
              <span class="name">{one.text}</span>
              <span class="faint">{one.kind}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
