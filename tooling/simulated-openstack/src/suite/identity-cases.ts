/** Cases of keystone. */

import { strict as assert } from 'node:assert';
import { type ApiCase, casesOf, hasKeys, noId, refused, refusedInHtml } from './test-bed.js';
import { ApiClient, listOf, textOf } from './api-client.js';

const PROJECT_KEYS = [
  'id',
  'name',
  'domain_id',
  'description',
  'enabled',
  'parent_id',
  'is_domain',
  'tags',
  'options',
  'links',
];

const identityCase = casesOf('identity');

const UNAUTHORIZED = {
  error: { code: 401, message: 'The request you have made requires authentication.', title: 'Unauthorized' },
};

const password = (user: string, secret: string, scope?: object): object => ({
  auth: {
    identity: {
      methods: ['password'],
      password: { user: { name: user, domain: { name: 'Default' }, password: secret } },
    },
    ...(scope === undefined ? {} : { scope }),
  },
});

export const identityCases: readonly ApiCase[] = [
  identityCase('returns its version at its root, with 300', async ({ demo }) => {
    const answer = await demo.at(`${demo.authUrl.replace(/\/v3$/, '')}/`, { token: null });
    assert.equal(answer.status, 300);
    assert.match(textOf(listOf(answer.member('versions')['values'])[0]?.['id']), /^v3\.\d+$/);
  }),
  identityCase('returns a token with project, roles, catalog and times', async ({ demo }) => {
    const answer = await demo.post('identity', '/auth/tokens', demo.credentials, { token: null });
    assert.equal(answer.status, 201);
    assert.ok((answer.headers.get('x-subject-token') ?? '').length > 60);
    const token = answer.member('token');
    const keys = [
      'methods',
      'user',
      'audit_ids',
      'expires_at',
      'issued_at',
      'project',
      'is_domain',
      'roles',
      'catalog',
    ];
    hasKeys(token, keys);
    assert.match(textOf(token['expires_at']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    for (const type of ['compute', 'image', 'network', 'volumev3', 'identity']) {
      const entry = listOf(token['catalog']).find((candidate) => candidate['type'] === type);
      const interfaces = listOf(entry?.['endpoints']).map((endpoint) => endpoint['interface']);
      assert.deepEqual(interfaces.sort(), ['admin', 'internal', 'public'], type);
    }
  }),
  identityCase(
    'returns a token for an application credential by name and user, in its project',
    async ({ cloudsYaml, demo }) => {
      assert.equal((await ApiClient.logIn(cloudsYaml, 'real-appcred')).projectId, demo.projectId);
    },
  ),
  identityCase(
    'returns a token for an application credential by id, and refuses an additional scope',
    async ({ demo }) => {
      const listed = await demo.get('identity', `/users/${demo.userId}/application_credentials`);
      const application_credential = { id: listed.list('application_credentials')[0]?.['id'], secret: 'ostack' };
      const identity = { methods: ['application_credential'], application_credential };
      const token = await demo.post('identity', '/auth/tokens', { auth: { identity } }, { token: null });
      assert.equal(token.status, 201);
      const scope = { project: { id: demo.projectId } };
      const scoped = await demo.post('identity', '/auth/tokens', { auth: { identity, scope } }, { token: null });
      assert.equal(scoped.status, 401);
      assert.match(textOf(scoped.member('error')['message']), /Application credentials cannot request a scope/);
    },
  ),
  identityCase('returns a token for a token, with the same expiry', async ({ demo }) => {
    const first = await demo.post('identity', '/auth/tokens', demo.credentials, { token: null });
    const identity = { methods: ['token'], token: { id: first.headers.get('x-subject-token') } };
    const scope = { project: { id: demo.projectId } };
    const second = await demo.post('identity', '/auth/tokens', { auth: { identity, scope } }, { token: null });
    assert.equal(second.status, 201, second.text);
    assert.equal(second.member('token')['expires_at'], first.member('token')['expires_at']);
  }),
  ...(
    [
      ['a wrong password', password('demo', 'wrong')],
      ['a user that does not exist', password('nobody', 'ostack')],
      [
        'a project that does not exist',
        password('demo', 'ostack', { project: { name: 'none', domain: { name: 'Default' } } }),
      ],
      ['a domain in which the user has no role', password('demo', 'ostack', { domain: { name: 'Default' } })],
    ] as const
  ).map(([what, credentials]): ApiCase =>
    identityCase(`refuses ${what} with 401 and no details`, async ({ demo }) => {
      const answer = await demo.post('identity', '/auth/tokens', credentials, { token: null });
      refused(answer, 401, UNAUTHORIZED);
      assert.match(answer.headers.get('www-authenticate') ?? '', /^Keystone uri="http/);
    }),
  ),
  identityCase('refuses a token request without credentials with 400', async ({ demo }) => {
    const answer = await demo.post('identity', '/auth/tokens', {}, { token: null });
    assert.equal(answer.status, 400);
    assert.match(textOf(answer.member('error')['message']), /^Expecting to find auth in request body\./);
  }),
  identityCase('revokes a token, and refuses it afterwards', async ({ demo }) => {
    const given = await demo.post('identity', '/auth/tokens', demo.credentials, { token: null });
    const token = given.headers.get('x-subject-token') ?? '';
    const headers = { 'X-Subject-Token': token };
    const revoked = await demo.call('identity', 'DELETE', '/auth/tokens', { token, headers });
    assert.equal(revoked.status, 204);
    refused(await demo.get('identity', '/auth/tokens', { headers }), 404, {
      error: { code: 404, message: 'Failed to validate token', title: 'Not Found' },
    });
  }),
  identityCase(
    'shows users their own project, and refuses other projects and the list with 403',
    async ({ demo, limited }) => {
      const own = (await demo.get('identity', `/projects/${demo.projectId}`)).member('project');
      hasKeys(own, PROJECT_KEYS);
      assert.deepEqual([own['id'], own['name'], own['enabled']], [demo.projectId, 'demo', true]);
      for (const [path, action] of [
        ['/projects', 'list_projects'],
        [`/projects/${limited.projectId}`, 'get_project'],
        [`/projects/${noId()}`, 'get_project'],
      ] as const) {
        const message = `You are not authorized to perform the requested action: identity:${action}.`;
        refused(await demo.get('identity', path), 403, { error: { code: 403, message, title: 'Forbidden' } });
      }
    },
  ),
  identityCase('answers an unknown path with HTML', async ({ demo }) =>
    refusedInHtml(await demo.get('identity', '/nowhere'), 404, '<h1>Not Found</h1>'),
  ),
];
