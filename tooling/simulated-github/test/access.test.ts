/** Log-in: the App and its tokens, personal access tokens, registration, and the clock of the service. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { VirtualClock } from '@nodepool/core/testing';
import { startSimulatedGithub, type SimulatedGithub } from '../src/index.js';
import { appClaims, appToken, call, TestClient, USER_AGENT, type TestAnswer } from './support/client.js';

const HOUR_MS = 3_600_000;

let clock: VirtualClock;
let github: SimulatedGithub;

beforeEach(async () => {
  clock = new VirtualClock();
  github = await startSimulatedGithub({ clock, settings: { longPollMs: 0 } });
});

afterEach(() => github.close());

const rest = (path: string, options: Parameters<typeof call>[2]): Promise<TestAnswer> =>
  call('POST', `${github.url}/api/v3${path}`, options);
const said = ({ status, body }: TestAnswer): readonly unknown[] => [status, body.message];

describe('App', () => {
  const installation = (token: string, id = github.installations['acme']): Promise<TestAnswer> =>
    rest(`/app/installations/${id}/access_tokens`, { token });

  it('gets a token for its installation, which expires', async () => {
    const token = await appToken(github.appKeyFile, appClaims(github, clock));
    const { status, body } = await installation(token);
    expect(status).toBe(201);
    expect(body['expires_at']).toBe(new Date(clock.now() + HOUR_MS).toISOString());
    const use = (): Promise<TestAnswer> => rest('/orgs/acme/actions/runners/registration-token', { token: body.token });
    expect((await use()).status).toBe(201);
    await clock.advance(HOUR_MS);
    expect(said(await use())).toEqual([401, 'Bad credentials']);
  });

  it('can use its id as issuer', async () => {
    const claims = { ...appClaims(github, clock), iss: String(github.appId) };
    expect((await installation(await appToken(github.appKeyFile, claims))).status).toBe(201);
  });

  interface Change {
    readonly iss?: string;
    /** Seconds from now; undefined removes the claim. */
    readonly iat?: number | undefined;
    readonly exp?: number;
  }

  it.each<readonly [string, Change, readonly unknown[]]>([
    ['another issuer', { iss: 'Iv1.other' }, [404, 'Integration not found']],
    ['an expired token', { iat: -900, exp: 0 }, [401, expect.stringContaining("'exp') must be a numeric value")]],
    ['more than 10 minutes', { exp: 601 }, [401, expect.stringContaining('too far in the future')]],
    ['exactly 10 minutes', { exp: 600 }, [201, undefined]],
    ['a time of issue in the future', { iat: 1 }, [401, expect.stringContaining("'Issued at' claim ('iat')")]],
    ['no time of issue', { iat: undefined }, [401, expect.stringContaining("'iat'")]],
  ])('is judged by its claims: %s', async (_name, { iss, ...times }, expected) => {
    const now = clock.now() / 1000;
    const moved = Object.entries<number | undefined>(times).map(([name, seconds]) => [
      name,
      seconds === undefined ? undefined : now + seconds,
    ]);
    const changes: object = Object.fromEntries(moved);
    const claims = { ...appClaims(github, clock), ...(iss === undefined ? {} : { iss }), ...changes };
    expect(said(await installation(await appToken(github.appKeyFile, claims)))).toEqual(expected);
  });

  it('must sign with RS256 and its own key', async () => {
    const claims = appClaims(github, clock);
    const token = await appToken(github.appKeyFile, claims);
    const forged = `${token.slice(0, -4)}AAAA`;
    const unsigned = await appToken(github.appKeyFile, claims, { alg: 'none' });
    for (const wrong of [forged, unsigned, 'no-token', '']) {
      expect((await installation(wrong)).status).toBe(401);
    }
  });

  it('has installations of its own only', async () => {
    const token = await appToken(github.appKeyFile, appClaims(github, clock));
    expect(said(await installation(token, 9))).toEqual([404, 'Not Found']);
  });

  it('cannot register runners of other organizations and of enterprises', async () => {
    const { body } = await installation(await appToken(github.appKeyFile, appClaims(github, clock)));
    const register = (path: string): Promise<TestAnswer> =>
      rest(`${path}/actions/runners/registration-token`, { token: body.token });
    expect((await register('/repos/acme/app')).status).toBe(201);
    expect((await register('/orgs/globex')).status).toBe(404);
    expect((await register('/repos/acme/unknown')).status).toBe(404);
    expect(said(await register('/enterprises/umbrella'))).toEqual([403, 'Resource not accessible by integration']);
  });

  it('loses its tokens when they are revoked', async () => {
    const { body } = await installation(await appToken(github.appKeyFile, appClaims(github, clock)));
    github.revokeTokens('installation');
    expect((await rest('/orgs/acme/actions/runners/registration-token', { token: body.token })).status).toBe(401);
  });

  it.each([
    ['ahead by more than the token lasts', 600_000, 401],
    ['ahead within the token', 300_000, 201],
    ['behind the time of issue', -120_000, 401],
    ['behind by less than the margin', -30_000, 201],
  ])('meets a service whose clock is %s', async (_name, clockAheadMs, status) => {
    github.configure({ clockAheadMs });
    const answer = await installation(await appToken(github.appKeyFile, appClaims(github, clock)));
    expect(answer.status).toBe(status);
    expect(answer.headers.get('Date')).toBe(new Date(clock.now() + clockAheadMs).toUTCString());
  });
});

describe('personal access token', () => {
  it.each([
    ['/orgs/acme', 'admin:org'],
    ['/repos/acme/app', 'repo'],
    ['/enterprises/umbrella', 'manage_runners:enterprise'],
  ] as const)('registers runners of %s with %s only', async (path, permission) => {
    const all = ['admin:org', 'repo', 'manage_runners:enterprise'] as const;
    const right = github.personalToken([permission]);
    const wrong = github.personalToken(all.filter((other) => other !== permission));
    const register = (token: string): Promise<TestAnswer> =>
      rest(`${path}/actions/runners/registration-token`, { token });
    expect((await register(right)).status).toBe(201);
    expect((await register(wrong)).status).toBe(403);
  });

  it('is refused if it is unknown', async () => {
    const answer = await rest('/orgs/acme/actions/runners/registration-token', { token: 'ghp_unknown' });
    expect(said(answer)).toEqual([401, 'Bad credentials']);
  });
});

describe('registration', () => {
  const registrationToken = async (path = '/orgs/acme'): Promise<string> =>
    (await rest(`${path}/actions/runners/registration-token`, { token: github.personalToken() })).body.token ?? '';
  const register = (token: string, body: object): Promise<TestAnswer> =>
    rest('/actions/runner-registration', { headers: { Authorization: `RemoteAuth ${token}` }, body });
  const right = (): object => ({ url: `${github.url}/acme`, runner_event: 'register' });

  it('returns the address of the tenant and a token with its expiry', async () => {
    const { status, body } = await register(await registrationToken(), right());
    expect(status).toBe(200);
    expect(body.url).toBe(`${github.actionsUrl}/tenant/acme/`);
    const claims = JSON.parse(Buffer.from(body.token?.split('.')[1] ?? '', 'base64url').toString()) as { exp: number };
    expect(claims.exp).toBe((clock.now() + HOUR_MS) / 1000);
  });

  it('is also at the root, as on api.github.com', async () => {
    const headers = { Authorization: `RemoteAuth ${await registrationToken()}` };
    const answer = await call('POST', `${github.url}/actions/runner-registration`, { headers, body: right() });
    expect(answer.status).toBe(200);
  });

  it('refuses a token of another scope, an unknown field and another event', async () => {
    expect((await register(await registrationToken('/repos/acme/app'), right())).status).toBe(404);
    const token = await registrationToken();
    expect((await register(token, { ...right(), extra: 1 })).status).toBe(422);
    expect((await register(token, { ...right(), runner_event: 'remove' })).status).toBe(422);
    expect((await register(token, { ...right(), url: 'http://127.0.0.1:1/acme' })).status).toBe(404);
    expect((await register('unknown', right())).status).toBe(401);
  });

  it('refuses a registration token after its time', async () => {
    const token = await registrationToken();
    await clock.advance(HOUR_MS);
    expect((await register(token, right())).status).toBe(401);
  });

  it('refuses calls without User-Agent', async () => {
    const answer = await rest('/orgs/acme/actions/runners/registration-token', {
      ...{ token: github.personalToken(), headers: { 'User-Agent': '' } },
    });
    expect(answer.status).toBe(403);
  });
});

describe('token for the Actions service', () => {
  it('expires, and can be revoked', async () => {
    const client = await TestClient.logIn(github);
    expect((await client.call('GET', 'runtime/runnergroups')).status).toBe(200);
    github.revokeTokens('admin');
    expect((await client.call('GET', 'runtime/runnergroups')).status).toBe(401);
    await client.logInAgain();
    await clock.advance(HOUR_MS - 1);
    expect((await client.call('GET', 'runtime/runnergroups')).status).toBe(200);
    await clock.advance(1);
    expect((await client.call('GET', 'runtime/runnergroups')).status).toBe(401);
  });

  it('belongs to one tenant', async () => {
    const { url, token } = await tokenOf('acme');
    const other = url.replace('/acme/', '/globex/');
    const answer = await call('GET', `${other}_apis/runtime/runnergroups?api-version=6.0-preview`, { token });
    expect(answer.status).toBe(403);
    const nowhere = url.replace('/acme/', '/unknown/');
    expect((await call('GET', `${nowhere}_apis/runtime/runnergroups?api-version=6.0-preview`, { token })).status).toBe(
      404,
    );
  });

  async function tokenOf(organization: string): Promise<{ readonly url: string; readonly token: string }> {
    const path = `/orgs/${organization}/actions/runners/registration-token`;
    const { body } = await rest(path, { token: github.personalToken(), headers: { 'User-Agent': USER_AGENT } });
    const registered = await rest('/actions/runner-registration', {
      headers: { Authorization: `RemoteAuth ${body.token}` },
      body: { url: `${github.url}/${organization}`, runner_event: 'register' },
    });
    return { url: registered.body.url ?? '', token: registered.body.token ?? '' };
  }
});
