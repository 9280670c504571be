/**
 * Just-in-time configurations as actions/runner reads them: base64 of a JSON object whose members are files, each in
 * base64 again. See `Runner.cs` and `ConfigurationStore.cs` in https://github.com/actions/runner.
 */

import { isJsonObject, type JsonObject } from '@nodepool/core';
import { keyPair } from './keys.js';
import type { Runner } from './records.js';

export const POOL_ID = 1;

export interface RunnerAddresses {
  /** URL of the scope on GitHub's pages. */
  readonly gitHubUrl: string;
  /** URL at which the runner opens its session and asks for jobs. */
  readonly brokerUrl: string;
  /** URL at which the runner exchanges its signature for a token. */
  readonly tokenUrl: string;
}

/** Key of all runners, since generating one for each takes long. */
export function runnerKey(): ReturnType<typeof keyPair> {
  return keyPair('runners');
}

/** Returns the text that a runner takes with `--jitconfig`. */
export function encodeJitConfig(runner: Runner, { gitHubUrl, brokerUrl, tokenUrl }: RunnerAddresses): string {
  const settings = {
    AgentId: String(runner.id),
    AgentName: runner.name,
    PoolId: String(POOL_ID),
    PoolName: 'Default',
    DisableUpdate: 'True',
    Ephemeral: 'True',
    UseV2Flow: 'True',
    ServerUrlV2: brokerUrl,
    GitHubUrl: gitHubUrl,
    WorkFolder: runner.workFolder,
    // The real runner ignores this member; the stand-in obeys it.
    Simulation: { behaviour: runner.behaviour },
  };
  const data = { ClientId: runner.clientId, AuthorizationUrl: tokenUrl, RequireFipsCryptography: 'True' };
  return encoded({
    '.runner': encoded(settings),
    '.credentials': encoded({ Scheme: 'OAuth', Data: data }),
    '.credentials_rsaparams': rsaParameters(),
  });
}

/** Returns the client id of a runner from its configuration. Throws if the text is not a configuration. */
export function registrationIn(encodedJitConfig: string): { readonly clientId: string } {
  const files = decoded(encodedJitConfig);
  const { '.credentials': credentials = '' } = objectIn(files);
  const { Data: data } = objectIn(decoded(typeof credentials === 'string' ? credentials : ''));
  const { ClientId: clientId } = objectIn(data);
  if (typeof clientId !== 'string') throw new Error('the text is not a just-in-time configuration');
  return { clientId };
}

let parameters: string | undefined;

/** Returns the private key in the format of .NET's `RSAParameters`, which is converted once for all runners. */
function rsaParameters(): string {
  parameters ??= convertedKey();
  return parameters;
}

function convertedKey(): string {
  const { n, e, d, p, q, dp, dq, qi } = runnerKey().privateKey.export({ format: 'jwk' });
  const members = Object.entries({ modulus: n, exponent: e, d, p, q, dp, dq, inverseQ: qi });
  const standard = members.map(([name, value = '']) => [name, Buffer.from(value, 'base64url').toString('base64')]);
  return encoded(Object.fromEntries(standard) as JsonObject);
}

function encoded(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString('base64');
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64').toString('utf8'));
  } catch {
    // The caller reports that the text is not a configuration.
    return undefined;
  }
}

function objectIn(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
