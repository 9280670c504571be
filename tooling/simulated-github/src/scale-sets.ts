/** Runner groups and runner scale sets. */

import type { JsonValue } from '@nodepool/core';
import { ActionsError, invalidRequest } from './errors.js';
import { MessageQueue } from './message-queue.js';
import type { Scope } from './scopes.js';
import { DEFAULT_GROUP, timestamp, type GithubState } from './settings.js';
import { checked, type Checked } from './strict.js';
import type { Label, RunnerGroup, ScaleSet } from './records.js';

/** Fields of a scale set in calls. Go's client also sends members that it leaves empty, such as `createdOn`. */
export const SCALE_SET_FIELDS = {
  'id?': 'integer',
  'name?': 'string',
  'runnerGroupId?': 'integer',
  'runnerGroupName?': 'string',
  'labels?': 'array',
  'RunnerSetting?': 'object',
  'createdOn?': 'string',
} as const;

const RUNNER_SETTING = { 'disableUpdate?': 'boolean', 'ephemeral?': 'boolean', 'isElastic?': 'boolean' } as const;

export type ScaleSetBody = Checked<typeof SCALE_SET_FIELDS>;

/** Changes of a scale set; undefined leaves a member as it is. */
interface Changes {
  readonly name: string | undefined;
  readonly group: RunnerGroup | undefined;
  readonly labels: readonly Label[] | undefined;
  readonly disableUpdate: boolean | undefined;
}

export class ScaleSets {
  private readonly groups: RunnerGroup[] = [];
  private readonly sets = new Map<number, ScaleSet>();
  private lastId = 0;

  constructor(private readonly state: GithubState) {}

  /** All scale sets, oldest first. */
  all(): readonly ScaleSet[] {
    return [...this.sets.values()];
  }

  addGroup(scope: string, name: string, repositories?: readonly string[]): RunnerGroup {
    const id = DEFAULT_GROUP.id + this.groups.length + 1;
    const group = { id, name, scope, ...(repositories === undefined ? {} : { repositories }) };
    this.groups.push(group);
    return group;
  }

  groupsOf({ path }: Scope): readonly RunnerGroup[] {
    return [{ ...DEFAULT_GROUP, scope: path }, ...this.groups.filter(({ scope }) => scope === path)];
  }

  inScope({ path }: Scope): readonly ScaleSet[] {
    return this.all().filter(({ scope }) => scope.path === path);
  }

  /** Returns a scale set of a scope. Throws if it does not exist. */
  get(scope: Scope, id: number): ScaleSet {
    const found = this.sets.get(id);
    if (found?.scope.path === scope.path) return found;
    const message = `No runner scale set found with identifier ${id}.`;
    throw new ActionsError(404, 'RunnerScaleSetNotFoundException', message);
  }

  create(scope: Scope, body: ScaleSetBody): ScaleSet {
    const { name, group, labels, disableUpdate } = this.changesIn(scope, body);
    if (name === undefined || name === '') throw invalidRequest('The field "name" is missing');
    if (group === undefined) throw invalidRequest('The field "runnerGroupId" is missing');
    this.checkName(scope, name, group, undefined);
    this.lastId += 1;
    const set: ScaleSet = {
      id: this.lastId,
      ...{ scope, name, group, disableUpdate: disableUpdate ?? false },
      labels: labels === undefined || labels.length === 0 ? [{ name, type: 'System' }] : labels,
      createdOn: timestamp(this.state),
      queue: new MessageQueue(this.state),
      session: undefined,
      ...{ jobs: new Set(), offered: new Set(), runners: new Set(), unserved: [], waiting: new Set() },
    };
    this.sets.set(set.id, set);
    return set;
  }

  update(set: ScaleSet, body: ScaleSetBody): void {
    const { name = set.name, group = set.group, labels, disableUpdate } = this.changesIn(set.scope, body);
    this.checkName(set.scope, name, group, set);
    set.name = name;
    set.group = group;
    set.labels = labels ?? set.labels;
    set.disableUpdate = disableUpdate ?? set.disableUpdate;
  }

  delete({ id }: ScaleSet): void {
    this.sets.delete(id);
  }

  private changesIn(scope: Scope, body: ScaleSetBody): Changes {
    const { name, runnerGroupId, runnerGroupName, labels, RunnerSetting: setting } = body;
    const groups = this.groupsOf(scope);
    const group = runnerGroupId === undefined ? undefined : groups.find(({ id }) => id === runnerGroupId);
    if (runnerGroupId !== undefined && group === undefined) throw invalidRequest('The runner group does not exist');
    if (group !== undefined && runnerGroupName !== undefined && group.name !== runnerGroupName) {
      throw invalidRequest('"runnerGroupName" is not the name of the runner group');
    }
    const { disableUpdate } = checked(setting ?? {}, RUNNER_SETTING, (problem) =>
      invalidRequest(`RunnerSetting: ${problem}`),
    );
    return { name, group, labels: labels?.map(labelIn), disableUpdate };
  }

  private checkName(scope: Scope, name: string, group: RunnerGroup, except: ScaleSet | undefined): void {
    const taken = this.inScope(scope).some(
      (other) => other !== except && other.name === name && other.group.id === group.id,
    );
    if (!taken) return;
    throw new ActionsError(409, 'RunnerScaleSetExistsException', `Runner scale set ${name} already exists.`);
  }
}

function labelIn(value: JsonValue): Label {
  const fail = (problem: string): ActionsError => invalidRequest(`labels: ${problem}`);
  const { name, type } = checked(value, { name: 'string', type: 'string' }, fail);
  if (type !== 'System') throw fail('The type of a label must be "System"');
  if (name === '') throw fail('A label must have a name');
  return { name, type };
}
