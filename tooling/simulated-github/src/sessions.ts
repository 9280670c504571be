/** The session of a scale set, which only one client can hold. */

import { ActionsError, unauthorized } from './errors.js';
import type { EventLog } from './event-log.js';
import { IssuedTokens, tokenIn } from './issued-tokens.js';
import { newUuid, type GithubState } from './settings.js';
import type { ScaleSet, Session } from './records.js';

export class Sessions {
  private readonly tokens: IssuedTokens<Session>;

  constructor(
    private readonly state: GithubState,
    private readonly log: EventLog,
  ) {
    this.tokens = new IssuedTokens(state);
  }

  /** Opens a session. Throws if the scale set has one, even of the same owner. */
  open(scaleSet: ScaleSet, owner: string): Session {
    const { session: other, name } = scaleSet;
    if (other !== undefined) {
      const message = `The runner scale set ${name} already has an active session for owner ${other.owner}.`;
      throw new ActionsError(409, 'RunnerScaleSetSessionConflictException', message);
    }
    const id = newUuid(this.state);
    const expiry = undefined;
    const session: Session = { id, owner, scaleSet, capacity: undefined, capacities: [], openPolls: 0, expiry };
    scaleSet.session = session;
    this.expect(session);
    this.log.add(`Scale set ${name} has a session of ${owner}`);
    return session;
  }

  /** Returns a session. Throws if it does not exist any more. */
  get({ session }: ScaleSet, id: string): Session {
    if (session?.id === id) return session;
    throw new ActionsError(404, 'VssServiceException', `The session ${id} does not exist.`);
  }

  /** Returns a new token for the messages of a session. */
  token(session: Session): string {
    return this.tokens.issueJwt(session.id, session, this.state.settings.queueTokenMs).token;
  }

  /** Returns the session of a token for messages. Throws if the token is not valid. */
  check(authorization: string | undefined): Session {
    const session = this.tokens.grantOf(tokenIn(authorization, 'Bearer'));
    if (session === undefined) throw unauthorized('The token of the message queue is not valid or has expired');
    return session;
  }

  /** Records a call for messages with a capacity, during which the session does not expire. */
  beginPoll(session: Session, capacity: number): void {
    if (session.capacity !== capacity) session.capacities.push(capacity);
    session.capacity = capacity;
    session.openPolls += 1;
    session.expiry?.cancel();
  }

  endPoll(session: Session): void {
    session.openPolls -= 1;
    this.expect(session);
  }

  /** Ends a session. Its tokens remain valid, but there is nothing that they give access to. */
  end(session: Session, why: string): void {
    session.expiry?.cancel();
    if (session.scaleSet.session !== session) return;
    session.scaleSet.session = undefined;
    session.scaleSet.queue.wake();
    this.log.add(`The session of ${session.owner} for scale set ${session.scaleSet.name} ended: ${why}`);
  }

  /** Revokes the tokens for all message queues before their expiry. */
  revokeTokens(): void {
    this.tokens.revoke();
  }

  /** Ends the session unless another call for messages follows in time. */
  private expect(session: Session): void {
    session.expiry?.cancel();
    if (session.openPolls > 0 || session.scaleSet.session !== session) return;
    const { sessionExpiryMs } = this.state.settings;
    const expire = (): void => this.end(session, 'it expired');
    session.expiry = this.state.clock.schedule(sessionExpiryMs, expire, { background: true });
  }
}
