/** Routes of the Actions service for runner groups, runner scale sets and their runners. */

import type { JsonObject } from '@nodepool/core';
import type { Answer, Route } from '@nodepool/simulated-cloud';
import { actionsRoute, type ActionsRoute } from './actions-route.js';
import type { Dispatcher } from './dispatcher.js';
import { ActionsError, invalidRequest } from './errors.js';
import { faultOf, type CallFault } from './faults.js';
import { encodeJitConfig, type RunnerAddresses } from './jit-config.js';
import type { Runners } from './runners.js';
import { SCALE_SET_FIELDS, type ScaleSets } from './scale-sets.js';
import type { Scope } from './scopes.js';
import type { Sessions } from './sessions.js';
import type { GithubState } from './settings.js';
import { checkedBody, integerOf } from './strict.js';
import type { Tenants } from './tenants.js';
import type { Runner, ScaleSet } from './records.js';

const SETS = '/_apis/runtime/runnerscalesets';
const SET = `${SETS}/:id`;
const AGENTS = '/_apis/distributedtask/pools/0/agents';

export interface ScaleSetParts {
  readonly state: GithubState;
  readonly tenants: Tenants;
  readonly scaleSets: ScaleSets;
  readonly runners: Runners;
  readonly sessions: Sessions;
  readonly dispatcher: Dispatcher;
  /** Returns the addresses for a runner of a scope. */
  readonly addresses: (scope: Scope) => RunnerAddresses;
}

export function scaleSetRoutes(parts: ScaleSetParts): readonly Route<CallFault>[] {
  const { tenants } = parts;
  return [...groupAndSetRoutes(parts), ...runnerRoutes(parts)].map((route) =>
    actionsRoute(parts.state, tenants, route),
  );
}

/** Returns a scale set as the service shows it. */
export function shownScaleSet(
  set: ScaleSet,
  { tenants, dispatcher }: Pick<ScaleSetParts, 'tenants' | 'dispatcher'>,
): JsonObject {
  const { id, name, group, labels, disableUpdate, createdOn, scope } = set;
  return {
    ...{ id, name, runnerGroupId: group.id, runnerGroupName: group.name, createdOn },
    labels: labels.map((label) => ({ ...label })),
    RunnerSetting: { disableUpdate },
    runnerJitConfigUrl: `${tenants.urlOf(scope)}${SETS}/${id}/generatejitconfig`,
    statistics: { ...dispatcher.statisticsOf(set) },
  };
}

function groupAndSetRoutes(parts: ScaleSetParts): readonly ActionsRoute[] {
  const { scaleSets, sessions, dispatcher } = parts;
  const setOf = (scope: Scope, id: string | undefined): ScaleSet => scaleSets.get(scope, integerOf('id', id));
  const shown = (set: ScaleSet): Answer => ({ status: 200, body: shownScaleSet(set, parts) });
  return [
    {
      operation: 'runnergroups.list',
      method: 'GET',
      path: '/_apis/runtime/runnergroups',
      query: ['groupName'],
      handle({ query }, scope) {
        const name = query.get('groupName')?.toLowerCase();
        const found = scaleSets
          .groupsOf(scope)
          .filter((group) => name === undefined || group.name.toLowerCase() === name);
        const size = scaleSets.inScope(scope);
        const groups = found.map(({ id, name: groupName }) => {
          const count = size.filter(({ group }) => group.id === id).length;
          return { id, name: groupName, size: count, isDefaultGroup: id === 1 };
        });
        return list(groups);
      },
    },
    {
      operation: 'runnerscalesets.list',
      method: 'GET',
      path: SETS,
      query: ['runnerGroupId', 'name'],
      handle({ query }, scope) {
        const name = query.get('name');
        const group = query.get('runnerGroupId');
        const groupId = group === null ? undefined : integerOf('runnerGroupId', group);
        const found = scaleSets
          .inScope(scope)
          .filter((set) => (name === null || set.name === name) && (groupId === undefined || set.group.id === groupId));
        return list(found.map((set) => shownScaleSet(set, parts)));
      },
    },
    {
      operation: 'runnerscalesets.get',
      method: 'GET',
      path: SET,
      handle: ({ params }, scope) => shown(setOf(scope, params['id'])),
    },
    {
      operation: 'runnerscalesets.create',
      method: 'POST',
      path: SETS,
      handle: (context, scope) => shown(scaleSets.create(scope, checkedBody(context, SCALE_SET_FIELDS))),
    },
    {
      operation: 'runnerscalesets.update',
      method: 'PATCH',
      path: SET,
      handle(context, scope) {
        const set = setOf(scope, context.params['id']);
        const body = checkedBody(context, SCALE_SET_FIELDS);
        if (body.id !== undefined && body.id !== set.id) throw invalidRequest('"id" must be that of the path');
        scaleSets.update(set, body);
        dispatcher.dispatch();
        return shown(set);
      },
    },
    {
      operation: 'runnerscalesets.delete',
      method: 'DELETE',
      path: SET,
      handle({ params }, scope) {
        const set = setOf(scope, params['id']);
        if (set.session !== undefined) sessions.end(set.session, 'the scale set is deleted');
        dispatcher.deleteScaleSet(set);
        return { status: 204 };
      },
    },
  ];
}

function runnerRoutes(parts: ScaleSetParts): readonly ActionsRoute[] {
  const { scaleSets, runners, dispatcher, addresses } = parts;
  const runnerOf = (scope: Scope, id: string | undefined): Runner => runners.get(scope, integerOf('id', id));
  return [
    {
      operation: 'runnerscalesets.generateJitConfig',
      method: 'POST',
      path: `${SET}/generatejitconfig`,
      handle(context, scope) {
        const set = scaleSets.get(scope, integerOf('id', context.params['id']));
        const { name, workFolder } = checkedBody(context, { name: 'string', workFolder: 'string' });
        if (name === '') throw invalidRequest('The field "name" is empty');
        const behaviour = faultOf(context, 'runner')?.behaviour ?? 'normal';
        const folder = workFolder === '' ? '_work' : workFolder;
        const runner = runners.register(set, { name, workFolder: folder, behaviour });
        dispatcher.expectConnection(runner);
        return {
          status: 200,
          body: { runner: shownRunner(runner, parts), encodedJITConfig: encodeJitConfig(runner, addresses(scope)) },
        };
      },
    },
    {
      operation: 'agents.list',
      method: 'GET',
      path: AGENTS,
      query: ['agentName'],
      handle({ query }, scope) {
        const name = query.get('agentName');
        const named = name === null ? undefined : runners.withName(scope, name);
        const found = name === null ? runners.inScope(scope) : named === undefined ? [] : [named];
        return list(found.map((runner) => shownRunner(runner, parts)));
      },
    },
    {
      operation: 'agents.get',
      method: 'GET',
      path: `${AGENTS}/:id`,
      handle: ({ params }, scope) => ({ status: 200, body: shownRunner(runnerOf(scope, params['id']), parts) }),
    },
    {
      operation: 'agents.delete',
      method: 'DELETE',
      path: `${AGENTS}/:id`,
      handle({ params }, scope) {
        const runner = runnerOf(scope, params['id']);
        if (runner.job?.state === 'running') {
          const message = `Cannot delete the agent ${runner.name} while its job is running.`;
          throw new ActionsError(400, 'TaskAgentJobStillRunningException', message);
        }
        dispatcher.deregister(runner);
        return { status: 204 };
      },
    },
  ];
}

/** Returns a runner as the service shows it. */
function shownRunner(runner: Runner, { state }: ScaleSetParts): JsonObject {
  const { id, name, scaleSet, session, job, registeredAt } = runner;
  const fields = { id, name, runnerScaleSetId: scaleSet.id };
  if (!state.settings.runnerDetails) return fields;
  const { group, labels, disableUpdate } = scaleSet;
  return {
    ...{ ...fields, runnerGroupId: group.id, runnerGroupName: group.name, createdOn: registeredAt, disableUpdate },
    ...{ enabled: true, ephemeral: true, os: 'linux', version: '2.330.0', provisioningState: 'Provisioned' },
    status: session === undefined ? 'offline' : 'online',
    busy: job?.state === 'running',
    labels: labels.map((label) => ({ ...label })),
  };
}

function list(value: readonly JsonObject[]): Answer {
  return { status: 200, body: { count: value.length, value } };
}
