/** The settings of the bridge, `github.yaml`: defaults filled in, units converted, paths resolved. */

import { dirname, resolve } from 'node:path';
import type { FileForm, KeyPath } from '@nodepool/config';
import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { readSettingsFile } from '@nodepool/daemon';
import type { Credentials } from '../github/connection.js';
import { isSafeAddress } from '../github/http.js';
import { scopeOf, type GithubScope } from '../github/scope.js';
import { settingsSchema } from './schema.js';

export interface ScaleSetSettings {
  readonly name: string;
  readonly labels: readonly string[];
  readonly nodeLabel: string;
  readonly runnerGroup: string;
  readonly minRunners: number;
  readonly maxRunners: number;
  readonly priority: number;
  readonly tenant: string | undefined;
  readonly user: string | undefined;
  readonly identity: string | undefined;
  readonly runnerFolder: string;
  readonly workFolder: string;
  /** Variables of the runner, hooks included. */
  readonly environment: Readonly<Record<string, string>>;
  readonly startTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

export interface InstallationSettings {
  readonly name: string;
  readonly scope: GithubScope;
  readonly credentials: Credentials;
  readonly scaleSets: readonly ScaleSetSettings[];
}

export interface Settings {
  readonly installations: readonly InstallationSettings[];
}

/** Reads the settings. Rejects with `SettingsError`. */
export async function readSettings(file: string): Promise<Settings> {
  const form: FileForm<Settings> = {
    schema: settingsSchema,
    interpret: (value, report) => interpret(value, dirname(resolve(file)), report),
  };
  return await readSettingsFile(file, form);
}

type Report = (path: KeyPath, expected: string) => void;

function interpret(value: JsonObject, folder: string, report: Report): Settings {
  const installations = objectsIn(value['installations']).map((each, at) =>
    installationOf(each, folder, (path, expected) => report(['installations', at, ...path], expected)),
  );
  checkUnique(installations, (at) => report(['installations', at, 'name'], 'a name of its own'));
  return { installations };
}

function installationOf(value: JsonObject, folder: string, report: Report): InstallationSettings {
  const url = textIn(value, 'url') ?? '';
  const scope = scopeOf(url);
  if (scope === undefined) report(['url'], 'the page of an organization, a repository or an enterprise');
  else if (!isSafeAddress(url)) report(['url'], 'an https address');
  const { app } = value;
  const tokenFile = textIn(value, 'token');
  if ((tokenFile === undefined) === (app === undefined)) report([], 'exactly one of the keys app or token');
  const scaleSets = objectsIn(value['scale-sets']).map((each, at) =>
    scaleSetOf(each, folder, (path, expected) => report(['scale-sets', at, ...path], expected)),
  );
  checkUnique(scaleSets, (at) => report(['scale-sets', at, 'name'], 'a name of its own'));
  return {
    name: textIn(value, 'name') ?? '',
    scope: scope ?? { url, apiUrl: '', registrationPath: '' },
    credentials: isJsonObject(app)
      ? {
          kind: 'app',
          clientId: textIn(app, 'client-id') ?? '',
          installationId: numberIn(app, 'installation-id') ?? 0,
          keyFile: resolve(folder, textIn(app, 'private-key') ?? ''),
        }
      : { kind: 'token', file: resolve(folder, tokenFile ?? '') },
    scaleSets,
  };
}

function scaleSetOf(value: JsonObject, folder: string, report: Report): ScaleSetSettings {
  const name = textIn(value, 'name') ?? '';
  const labels = Array.isArray(value['labels']) ? value['labels'].map(String) : [name];
  const [minRunners, maxRunners] = [numberIn(value, 'min-runners') ?? 0, numberIn(value, 'max-runners') ?? 100];
  if (minRunners > maxRunners) report(['min-runners'], 'at most "max-runners"');
  const identity = textIn(value, 'identity');
  const { environment } = value;
  const hooks = [
    ['ACTIONS_RUNNER_HOOK_JOB_STARTED', textIn(value, 'hook-before-job')],
    ['ACTIONS_RUNNER_HOOK_JOB_COMPLETED', textIn(value, 'hook-after-job')],
  ].filter((hook): hook is [string, string] => hook[1] !== undefined);
  return {
    ...{ name, labels, minRunners, maxRunners },
    nodeLabel: textIn(value, 'node-label') ?? '',
    runnerGroup: textIn(value, 'runner-group') ?? 'default',
    priority: numberIn(value, 'priority') ?? 200,
    tenant: textIn(value, 'tenant'),
    user: textIn(value, 'user'),
    identity: identity === undefined ? undefined : resolve(folder, identity),
    runnerFolder: textIn(value, 'runner-folder') ?? 'actions-runner',
    workFolder: textIn(value, 'work-folder') ?? '_work',
    environment: {
      ...(isJsonObject(environment) ? (environment as Readonly<Record<string, string>>) : {}),
      ...Object.fromEntries(hooks),
    },
    startTimeoutMs: (numberIn(value, 'start-timeout') ?? 180) * 1000,
    idleTimeoutMs: (numberIn(value, 'idle-timeout') ?? 60) * 1000,
  };
}

function checkUnique(named: readonly { readonly name: string }[], report: (at: number) => void): void {
  const names = named.map(({ name }) => name.toLowerCase());
  names.forEach((name, at) => {
    if (names.indexOf(name) < at) report(at);
  });
}

function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((each): each is JsonObject => isJsonObject(each)) : [];
}

function textIn(value: JsonObject, name: string): string | undefined {
  const found = value[name];
  return typeof found === 'string' ? found : undefined;
}

function numberIn(value: JsonObject, name: string): number | undefined {
  const found = value[name];
  return typeof found === 'number' ? found : undefined;
}
