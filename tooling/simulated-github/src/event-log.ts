/** Log of events, in sentences for people. */

import { timestamp, type GithubState } from './settings.js';

export interface LoggedEvent {
  readonly time: string;
  readonly text: string;
}

/** Maximum number of events that are kept. */
const MAX_EVENTS = 1000;

export class EventLog {
  private events: LoggedEvent[] = [];

  /** `print` receives every event. */
  constructor(
    private readonly state: GithubState,
    private readonly print: (event: LoggedEvent) => void = () => undefined,
  ) {}

  add(text: string): void {
    const event = { time: timestamp(this.state), text };
    this.events.push(event);
    if (this.events.length > 2 * MAX_EVENTS) this.events = this.events.slice(-MAX_EVENTS);
    this.print(event);
  }

  /** Returns the last events, oldest first, up to 1,000. */
  last(): readonly LoggedEvent[] {
    return this.events.slice(-MAX_EVENTS);
  }
}
