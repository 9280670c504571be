/** Calls of the Actions service for runner scale sets and their runners. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import type { Connection } from './connection.js';
import {
  agentIn,
  jobIn,
  listIn,
  messageIn,
  numbersIn,
  scaleSetIn,
  sessionIn,
  type Agent,
  type JobMessage,
  type Message,
  type ScaleSetDocument,
  type SessionDocument,
} from './documents.js';
import { GithubError, isNotFound } from './errors.js';

const SETS = '_apis/runtime/runnerscalesets';
const AGENTS = '_apis/distributedtask/pools/0/agents';
/** GitHub answers a call for messages after about 50 seconds; the rest is for the network (ms). */
const POLL_TIMEOUT_MS = 80_000;
const DEFAULT_GROUP = { name: 'default', id: 1 } as const;

/** The settings of a scale set that GitHub stores. */
export interface ScaleSetSpec {
  readonly name: string;
  readonly groupId: number;
  readonly labels: readonly string[];
}

export interface JitConfig {
  readonly agent: Agent;
  /** The secret of the runner. */
  readonly encoded: string;
}

export class ActionsService {
  constructor(private readonly connection: Connection) {}

  /** Resolves with the id of a runner group. Rejects if it does not exist. */
  async groupId(name: string, signal: AbortSignal): Promise<number> {
    if (name.toLowerCase() === DEFAULT_GROUP.name) return DEFAULT_GROUP.id;
    const { json } = await this.connection.call(
      { operation: 'runnerGroups', method: 'GET', path: '_apis/runtime/runnergroups', query: { groupName: name } },
      signal,
    );
    const found = listIn(json).find((group) => sameName(group['name'], name));
    if (typeof found?.['id'] === 'number') return found['id'];
    throw new GithubError(`there is no runner group ${JSON.stringify(name)}`, 404, '', undefined);
  }

  /** Resolves with the scale set of this name in the group; undefined if there is none. */
  async findScaleSet({ name, groupId }: ScaleSetSpec, signal: AbortSignal): Promise<ScaleSetDocument | undefined> {
    const query = { runnerGroupId: String(groupId), name };
    const { json } = await this.connection.call(
      { operation: 'findScaleSet', method: 'GET', path: SETS, query },
      signal,
    );
    return listIn(json).flatMap((each) => scaleSetIn(each) ?? []).find((each) => each.name === name); // prettier-ignore
  }

  async createScaleSet(spec: ScaleSetSpec, signal: AbortSignal): Promise<ScaleSetDocument> {
    const call = { operation: 'createScaleSet', method: 'POST', path: SETS, json: bodyOf(spec) } as const;
    return required('createScaleSet', scaleSetIn((await this.connection.call(call, signal)).json));
  }

  async updateScaleSet(id: number, spec: ScaleSetSpec, signal: AbortSignal): Promise<ScaleSetDocument> {
    const call = { operation: 'updateScaleSet', method: 'PATCH', path: `${SETS}/${id}`, json: bodyOf(spec) } as const;
    return required('updateScaleSet', scaleSetIn((await this.connection.call(call, signal)).json));
  }

  async scaleSet(id: number, signal: AbortSignal): Promise<ScaleSetDocument> {
    const call = { operation: 'scaleSet', method: 'GET', path: `${SETS}/${id}` } as const;
    return required('scaleSet', scaleSetIn((await this.connection.call(call, signal)).json));
  }

  async openSession(id: number, owner: string, signal: AbortSignal): Promise<SessionDocument> {
    const path = `${SETS}/${id}/sessions`;
    const call = { operation: 'openSession', method: 'POST', path, json: { ownerName: owner } } as const;
    return required('openSession', sessionIn((await this.connection.call(call, signal)).json));
  }

  /** Renews the token of a session. */
  async renewSession(id: number, session: string, signal: AbortSignal): Promise<SessionDocument> {
    const call = { operation: 'renewSession', method: 'PATCH', path: `${SETS}/${id}/sessions/${session}` } as const;
    return required('renewSession', sessionIn((await this.connection.call(call, signal)).json));
  }

  /** Closes a session; does nothing if it does not exist. */
  async closeSession(id: number, session: string, signal: AbortSignal): Promise<void> {
    const path = `${SETS}/${id}/sessions/${encodeURIComponent(session)}`;
    await existing(this.connection.call({ operation: 'closeSession', method: 'DELETE', path }, signal));
  }

  /** Resolves with the next message after `last`; undefined if there is none for some time. */
  async nextMessage(
    session: SessionDocument,
    last: number,
    capacity: number,
    signal: AbortSignal,
  ): Promise<Message | undefined> {
    const url = new URL(session.queueUrl);
    if (last > 0) url.searchParams.set('lastMessageId', String(last));
    const { status, json } = await this.connection.callQueue(
      {
        ...{ operation: 'nextMessage', method: 'GET', url: url.href },
        ...{ token: session.queueToken, timeoutMs: POLL_TIMEOUT_MS },
      },
      { 'x-scalesetmaxcapacity': String(capacity) },
      signal,
    );
    return status === 202 ? undefined : required('nextMessage', messageIn(json));
  }

  async deleteMessage({ queueUrl, queueToken }: SessionDocument, message: number, signal: AbortSignal): Promise<void> {
    const url = new URL(queueUrl);
    url.pathname = `${url.pathname}/${message}`;
    const call = { operation: 'deleteMessage', method: 'DELETE', url: url.href, token: queueToken } as const;
    await existing(this.connection.callQueue(call, {}, signal));
  }

  /** Resolves with the ids of those jobs that the scale set has got. */
  async acquireJobs(
    id: number,
    { queueToken }: SessionDocument,
    requests: readonly number[],
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const { json } = await this.connection.call(
      {
        ...{ operation: 'acquireJobs', method: 'POST', path: `${SETS}/${id}/acquirejobs` },
        ...{ json: [...requests], token: queueToken },
      },
      signal,
    );
    return numbersIn(json);
  }

  /** Resolves with the jobs that are offered to the scale set and that no scale set has acquired. */
  async offeredJobs(id: number, signal: AbortSignal): Promise<readonly JobMessage[]> {
    const call = { operation: 'offeredJobs', method: 'GET', path: `${SETS}/${id}/acquirablejobs` } as const;
    return listIn((await this.connection.call(call, signal)).json).flatMap((each) => jobIn(each) ?? []);
  }

  /** Registers a runner for one job. Rejects with status 409 if the name exists. */
  async generateJitConfig(id: number, name: string, workFolder: string, signal: AbortSignal): Promise<JitConfig> {
    const { json } = await this.connection.call(
      {
        ...{ operation: 'generateJitConfig', method: 'POST', path: `${SETS}/${id}/generatejitconfig` },
        json: { name, workFolder },
      },
      signal,
    );
    const { runner, encodedJITConfig: encoded } = (json ?? {}) as JsonObject;
    const agent = required('generateJitConfig', agentIn(runner));
    return { agent, encoded: required('generateJitConfig', typeof encoded === 'string' ? encoded : undefined) };
  }

  /** Resolves with all runners of the installation's scope. */
  async agents(signal: AbortSignal): Promise<readonly Agent[]> {
    const { json } = await this.connection.call({ operation: 'agents', method: 'GET', path: AGENTS }, signal);
    const listed = listIn(json);
    const count = (json as JsonObject | undefined)?.['count'];
    // A listing that is not complete would let living runners look deleted.
    if (typeof count !== 'number' || count !== listed.length) {
      throw new GithubError('agents: the list of the runners is not complete', 200, '', undefined);
    }
    return listed.flatMap((each) => agentIn(each) ?? []);
  }

  async agentNamed(name: string, signal: AbortSignal): Promise<Agent | undefined> {
    const call = { operation: 'agentNamed', method: 'GET', path: AGENTS, query: { agentName: name } } as const;
    const found = listIn((await this.connection.call(call, signal)).json).flatMap((each) => agentIn(each) ?? []);
    return found.find((agent) => agent.name === name);
  }

  /** Deletes a runner; does nothing if it does not exist. Rejects (`isJobRunning`) while its job runs. */
  async deleteAgent(id: number, signal: AbortSignal): Promise<void> {
    const call = { operation: 'deleteAgent', method: 'DELETE', path: `${AGENTS}/${id}` } as const;
    await existing(this.connection.call(call, signal));
  }
}

function sameName(found: JsonValue | undefined, name: string): boolean {
  return typeof found === 'string' && found.toLowerCase() === name.toLowerCase();
}

function bodyOf({ name, groupId, labels }: ScaleSetSpec): JsonObject {
  return {
    name,
    runnerGroupId: groupId,
    labels: labels.map((label) => ({ name: label, type: 'System' })),
    // The image of the nodes has the runner; an update would delay each job.
    RunnerSetting: { disableUpdate: true },
  };
}

function required<T>(operation: string, value: T | undefined): T {
  if (value !== undefined) return value;
  throw new GithubError(`${operation}: the answer is not complete`, undefined, '', undefined);
}

async function existing(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
