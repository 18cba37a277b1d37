// The two pipes to greenroom, kept apart from what the handler prints.

const LINE_FEED = 0x0a;

/** greenroom sets this for its workers. */
const UNDER_GREENROOM = "GREENROOM_PROTOCOL";

/** Lines from greenroom and lines to it. */
export class Channel {
  /** There is one at most: the pipes are those of the process. */
  static #opened;

  #input = process.stdin;
  #write;
  /** Whole lines that nobody has asked for. */
  #lines = [];
  /** The parts of the line that is coming. */
  #parts = [];
  #waiting;
  #isOver = false;

  /**
   * Takes standard input and standard output over, for the rest of the process: what
   * `console.log` and `process.stdout.write` are given goes to standard error.
   */
  static open() {
    Channel.#opened ??= new Channel();
    return Channel.#opened;
  }

  constructor() {
    this.#write = process.stdout.write.bind(process.stdout);
    process.stdout.write = process.stderr.write.bind(process.stderr);
    process.stdout.on("error", () => this.#giveUp());
    this.#input.on("data", (bytes) => this.#take(bytes));
    this.#input.on("end", () => this.stop());
    this.#input.on("error", () => this.stop());
    this.#input.pause();
  }

  /** No further line is read. */
  stop() {
    this.#isOver = true;
    this.#lines.length = 0;
    this.#input.pause();
    this.#waiting?.(undefined);
  }

  /** The next line without its end; `undefined` at the end of input, and after a stop. */
  readLine() {
    if (this.#lines.length > 0) return Promise.resolve(this.#lines.shift());
    if (this.#isOver) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      this.#waiting = (line) => {
        this.#waiting = undefined;
        resolve(line);
      };
      this.#input.resume();
    });
  }

  #take(bytes) {
    let from = 0;
    for (let end; (end = bytes.indexOf(LINE_FEED, from)) >= 0; from = end + 1) {
      this.#parts.push(bytes.subarray(from, end));
      this.#lines.push(Buffer.concat(this.#parts).toString("utf8"));
      this.#parts = [];
    }
    this.#parts.push(bytes.subarray(from));
    if (this.#lines.length > 0) {
      // What greenroom has not written yet is not read ahead of time.
      this.#input.pause();
      this.#waiting?.(this.#lines.shift());
    }
  }

  /** Resolves once the line has left the process, however slowly greenroom reads. */
  writeLine(line) {
    return new Promise((resolve) => {
      this.#write(line, (error) => (error ? this.#giveUp() : resolve()));
    });
  }

  #giveUp() {
    process.stderr.write("greenroom is gone: it has closed the worker's standard output\n");
    process.exit(1);
  }
}

// What is printed before the worker runs does no harm then. Child processes are not workers.
if (process.env[UNDER_GREENROOM] !== undefined) {
  delete process.env[UNDER_GREENROOM];
  Channel.open();
}
