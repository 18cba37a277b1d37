/**
 * Workers for Greenroom's `exec` handler: a handler is one function with a typed event.
 *
 * What the handler returns, or what its promise becomes, decides what follows:
 *
 * | result | what follows |
 * |---|---|
 * | nothing | the event is handled |
 * | the event itself | the event is handled, and goes to the outputs as it came |
 * | an `Event` | the event is handled, and this one goes to the outputs |
 * | an array or an iterator, an async one too | the same with several events, in their order |
 * | `throw new Retry({ after: 5 })` | another attempt, in five seconds; without `after` by the backoff |
 * | `throw new Reject(reason)` | no attempt will help: a dead letter |
 * | `throw new Release()` | not begun: tried again soon, and no attempt is counted |
 * | anything else that is thrown | a failure: another attempt by the backoff |
 *
 * @module greenroom-worker
 */

export { Event } from "./event.js";
export { Reject, Release, Retry } from "./outcome.js";
export { Worker, run } from "./worker.js";
