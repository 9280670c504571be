/** Registered runners, which the Actions service calls agents. */

import { ActionsError } from './errors.js';
import type { RunnerBehaviour } from './runner-behaviour.js';
import type { Scope } from './scopes.js';
import { newUuid, timestamp, type GithubState } from './settings.js';
import type { Runner, ScaleSet } from './records.js';

/** Settings of a runner in a call of `generatejitconfig`. */
export interface RunnerSettings {
  readonly name: string;
  readonly workFolder: string;
  readonly behaviour: RunnerBehaviour;
}

export class Runners {
  private readonly runners = new Map<number, Runner>();
  private readonly clients = new Map<string, Runner>();
  /** Runners by scope and name. */
  private readonly names = new Map<string, Runner>();
  private lastId = 0;

  constructor(private readonly state: GithubState) {}

  all(): readonly Runner[] {
    return [...this.runners.values()];
  }

  inScope({ path }: Scope): readonly Runner[] {
    return this.all().filter(({ scaleSet }) => scaleSet.scope.path === path);
  }

  /** Registers a runner. Throws if its name is in use. */
  register(scaleSet: ScaleSet, settings: RunnerSettings): Runner {
    const { name } = settings;
    if (this.names.has(nameIn(scaleSet.scope, name))) {
      throw new ActionsError(409, 'TaskAgentExistsException', `A runner exists with the same name ${name}.`);
    }
    this.lastId += 1;
    const runner: Runner = {
      ...{ id: this.lastId, scaleSet, ...settings },
      clientId: newUuid(this.state),
      registeredAt: timestamp(this.state),
      session: undefined,
      job: undefined,
      openCalls: 0,
      wake: undefined,
      isGone: false,
      timer: undefined,
    };
    this.runners.set(runner.id, runner);
    this.clients.set(runner.clientId, runner);
    this.names.set(nameIn(scaleSet.scope, name), runner);
    scaleSet.runners.add(runner);
    return runner;
  }

  /** Returns a runner of a scope. Throws if it does not exist. */
  get(scope: Scope, id: number): Runner {
    const found = this.runners.get(id);
    if (found?.scaleSet.scope.path === scope.path) return found;
    throw new ActionsError(404, 'TaskAgentNotFoundException', `The agent with id ${id} was not found.`);
  }

  withClientId(clientId: string): Runner | undefined {
    return this.clients.get(clientId);
  }

  withName(scope: Scope, name: string): Runner | undefined {
    return this.names.get(nameIn(scope, name));
  }

  delete(runner: Runner): void {
    runner.isGone = true;
    runner.session = undefined;
    runner.timer?.cancel();
    this.runners.delete(runner.id);
    this.clients.delete(runner.clientId);
    this.names.delete(nameIn(runner.scaleSet.scope, runner.name));
    runner.scaleSet.runners.delete(runner);
  }
}

function nameIn({ path }: Scope, name: string): string {
  return `${path} ${name}`;
}
