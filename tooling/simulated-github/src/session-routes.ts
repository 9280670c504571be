/** Routes of the Actions service for the session of a scale set and its messages. */

import type { JsonObject } from '@nodepool/core';
import type { Answer, Route } from '@nodepool/simulated-cloud';
import { actionsRoute, type ActionsRoute } from './actions-route.js';
import { invalidRequest, unauthorized, ActionsError } from './errors.js';
import { faultOf, type CallFault, type GithubContext } from './faults.js';
import type { QueuedMessage } from './message-queue.js';
import { shownScaleSet, type ScaleSetParts } from './scale-set-routes.js';
import { checkedBody, checkQuery, checkUserAgent, checkVersion, integerOf, integersIn } from './strict.js';
import type { Session } from './records.js';

const SET = '/_apis/runtime/runnerscalesets/:id';
const SESSION = `${SET}/sessions/:session`;
const QUEUE_PATH = '/messages';
const NO_SESSION = '00000000-0000-0000-0000-000000000000';
const CAPACITY_HEADER = 'x-scalesetmaxcapacity';
const MAX_CAPACITY = 2 ** 31 - 1;

export function sessionRoutes(parts: ScaleSetParts): readonly Route<CallFault>[] {
  const { tenants } = parts;
  return [...sessionsOfSets(parts).map((route) => actionsRoute(parts.state, tenants, route)), ...messageRoutes(parts)];
}

function sessionsOfSets(parts: ScaleSetParts): readonly ActionsRoute[] {
  const { scaleSets, sessions, dispatcher } = parts;
  const setOf = ({ params }: GithubContext, scope: Parameters<typeof scaleSets.get>[0]): Session['scaleSet'] =>
    scaleSets.get(scope, integerOf('id', params['id']));
  return [
    {
      operation: 'sessions.create',
      method: 'POST',
      path: `${SET}/sessions`,
      handle(context, scope) {
        const set = setOf(context, scope);
        // Go's client sends its empty session id.
        const body = checkedBody(context, { 'sessionId?': 'string', ownerName: 'string' });
        const { sessionId = NO_SESSION, ownerName } = body;
        if (sessionId !== NO_SESSION) throw invalidRequest('The service chooses "sessionId"');
        if (ownerName === '') throw invalidRequest('The field "ownerName" is empty');
        return shown(sessions.open(set, ownerName), parts);
      },
    },
    {
      operation: 'sessions.refresh',
      method: 'PATCH',
      path: SESSION,
      handle(context, scope) {
        return shown(sessions.get(setOf(context, scope), context.params['session'] ?? ''), parts);
      },
    },
    {
      operation: 'sessions.delete',
      method: 'DELETE',
      path: SESSION,
      handle(context, scope) {
        const session = sessions.get(setOf(context, scope), context.params['session'] ?? '');
        sessions.end(session, 'its owner closed it');
        return { status: 204 };
      },
    },
    {
      operation: 'runnerscalesets.listAcquirableJobs',
      method: 'GET',
      path: `${SET}/acquirablejobs`,
      handle(context, scope) {
        const value = dispatcher.offersOf(setOf(context, scope));
        return value.length === 0 ? { status: 204 } : { status: 200, body: { count: value.length, value } };
      },
    },
    {
      operation: 'runnerscalesets.acquireJobs',
      method: 'POST',
      path: `${SET}/acquirejobs`,
      adminToken: false,
      handle(context, scope) {
        const session = sessions.check(context.headers.authorization);
        const set = setOf(context, scope);
        if (session !== set.session) throw unauthorized('The token belongs to another session');
        const value = dispatcher.acquire(set, integersIn(context));
        return { status: 200, body: { count: value.length, value } };
      },
    },
  ];
}

function messageRoutes(parts: ScaleSetParts): readonly Route<CallFault>[] {
  return [
    {
      operation: 'messages.get',
      method: 'GET',
      path: `${QUEUE_PATH}/:set`,
      async handle(context) {
        checkUserAgent(context, parts.state);
        const session = sessionOf(context, parts);
        checkVersion(context);
        checkQuery(context, ['sessionId', 'lastMessageId']);
        const last = context.query.get('lastMessageId');
        const capacity = capacityIn(context);
        const message = await nextMessage(
          session,
          capacity,
          last === null ? 0 : integerOf('lastMessageId', last),
          context,
          parts,
        );
        return message === undefined ? { status: 202 } : delivered(message, session, context, parts);
      },
    },
    {
      operation: 'messages.delete',
      method: 'DELETE',
      path: `${QUEUE_PATH}/:set/:message`,
      handle(context) {
        checkUserAgent(context, parts.state);
        const session = sessionOf(context, parts);
        checkQuery(context, ['sessionId']);
        const id = integerOf('message', context.params['message']);
        // A repeated deletion succeeds: the client may not have received the first answer.
        session.scaleSet.queue.delete(id);
        return { status: 204 };
      },
    },
  ];
}

/** Returns the session of a call for messages. Throws unless its token and its address belong to a living session. */
function sessionOf({ headers, params, query }: GithubContext, { sessions }: ScaleSetParts): Session {
  const session = sessions.check(headers.authorization);
  const { scaleSet, id } = session;
  const isOwn = params['set'] === String(scaleSet.id) && query.get('sessionId') === id;
  if (!isOwn) throw unauthorized('The token belongs to another message queue');
  if (scaleSet.session !== session) {
    throw new ActionsError(404, 'VssServiceException', `The session ${id} does not exist.`);
  }
  return session;
}

function capacityIn({ headers }: GithubContext): number {
  const text = headers[CAPACITY_HEADER];
  if (typeof text !== 'string') throw invalidRequest('The header X-ScaleSetMaxCapacity is missing');
  const capacity = integerOf('X-ScaleSetMaxCapacity', text);
  if (capacity > MAX_CAPACITY) throw invalidRequest('The header X-ScaleSetMaxCapacity is too large');
  return capacity;
}

/** Returns the next message, if necessary after waiting, or undefined if there is none in time. */
async function nextMessage(
  session: Session,
  capacity: number,
  lastId: number,
  context: GithubContext,
  { sessions, dispatcher, state }: ScaleSetParts,
): Promise<QueuedMessage | undefined> {
  const { queue } = session.scaleSet;
  const ended = context.ended();
  const { clock, settings } = state;
  const deadline = clock.monotonic() + settings.longPollMs;
  sessions.beginPoll(session, capacity);
  try {
    dispatcher.dispatch();
    for (;;) {
      if (session.scaleSet.session !== session) {
        throw new ActionsError(404, 'VssServiceException', `The session ${session.id} does not exist.`);
      }
      const message = ended.aborted ? undefined : queue.next(lastId);
      const leftMs = deadline - clock.monotonic();
      if (message !== undefined || leftMs <= 0 || ended.aborted) return message;
      await queue.wait(leftMs, ended);
    }
  } finally {
    sessions.endPoll(session);
  }
}

function delivered(message: QueuedMessage, session: Session, context: GithubContext, parts: ScaleSetParts): Answer {
  message.deliveries += 1;
  const exact = parts.dispatcher.statisticsOf(session.scaleSet);
  const statistics = { ...exact, ...faultOf(context, 'statistics')?.statistics };
  const body = JSON.stringify(message.jobs);
  const messageType = 'RunnerScaleSetJobMessages';
  return { status: 200, body: { messageId: message.id, messageType, body, statistics } };
}

function shown(session: Session, parts: ScaleSetParts): Answer {
  const { id, owner, scaleSet } = session;
  const { tenants, sessions, dispatcher } = parts;
  const body: JsonObject = {
    sessionId: id,
    ownerName: owner,
    runnerScaleSet: shownScaleSet(scaleSet, parts),
    messageQueueUrl: `${tenants.url}${QUEUE_PATH}/${scaleSet.id}?sessionId=${id}`,
    messageQueueAccessToken: sessions.token(session),
    statistics: { ...dispatcher.statisticsOf(scaleSet) },
  };
  return { status: 200, body };
}
