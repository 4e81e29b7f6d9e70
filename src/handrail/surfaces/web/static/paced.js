// Reloading what changes often, without asking for it all the time.
import { isOut, isPassing } from "./live.js";

/** Runs at once; then, after a rest, once more for all calls made meanwhile. Failures are retried. */
export function paced(run, rest = 250) {
  let [isBusy, again] = [false, false];
  return function next() {
    again = isBusy;
    if (isBusy) return;
    isBusy = true;
    const end = (ms) => setTimeout(() => {
      isBusy = false;
      if (again && !isOut()) next();
    }, ms);
    Promise.resolve(run()).then(() => end(rest), (error) => {
      again ||= isPassing(error);
      end(2000);
    });
  };
}
