/** The schema of `github.yaml`. The reference page is made from it. */

import type { JsonObject, JsonSchema } from '@nodepool/core';

/** Names are parts of paths in ZooKeeper and of the names of runners. */
const NAME: JsonObject = { type: 'string', minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]*$' };
const TEXT: JsonObject = { type: 'string', minLength: 1 };
const COUNT: JsonObject = { type: 'integer', minimum: 0, maximum: 100_000 };
const SECONDS: JsonObject = { type: 'integer', minimum: 1, maximum: 86_400 };

const SCALE_SET_PROPERTIES: JsonObject = {
  name: { ...NAME, description: 'Name in GitHub.' },
  labels: {
    type: 'array',
    minItems: 1,
    items: TEXT,
    description: 'Labels in GitHub, which must include all of `runs-on` of a job. Default: the name.',
  },
  'node-label': { ...TEXT, description: 'Label in Nodepool.' },
  'runner-group': { ...TEXT, default: 'default', description: 'Runner group in GitHub.' },
  'min-runners': {
    ...COUNT,
    default: 0,
    description: 'Idle runners, in addition to busy ones.',
  },
  'max-runners': { ...COUNT, default: 100, description: 'Maximum number of runners.' },
  priority: {
    type: 'integer',
    minimum: 0,
    maximum: 999,
    default: 200,
    description: 'Priority of node requests; lower is served first.',
  },
  tenant: { ...TEXT, description: 'Tenant whose limits apply.' },
  user: { ...TEXT, description: 'Login name. Default: that of the image.' },
  identity: { ...TEXT, description: 'File with the ssh key. Default: those of the agent and of `~/.ssh`.' },
  'runner-folder': {
    ...TEXT,
    default: 'actions-runner',
    description: 'Folder on the image with `run.sh`, relative to the home folder.',
  },
  'work-folder': { ...TEXT, default: '_work', description: 'Folder for jobs, relative to the runner.' },
  environment: {
    type: 'object',
    propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
    additionalProperties: { type: 'string' },
    description: 'Environment variables of runner and jobs.',
  },
  'hook-before-job': { ...TEXT, description: 'Script on the image, run before the job.' },
  'hook-after-job': { ...TEXT, description: 'Script on the image, run after the job.' },
  'start-timeout': {
    ...SECONDS,
    default: 180,
    description: 'Seconds in which a runner must connect to GitHub once its node is ready.',
  },
  'idle-timeout': {
    ...SECONDS,
    default: 60,
    description: 'Seconds after which an idle runner is removed if it is not needed.',
  },
};

const INSTALLATION: JsonObject = {
  type: 'object',
  properties: {
    name: { ...NAME, description: 'Name in messages and metrics.' },
    url: {
      ...TEXT,
      description: 'Its page on github.com or an Enterprise Server.',
    },
    app: {
      type: 'object',
      properties: {
        'client-id': { ...TEXT, description: 'Client id.' },
        'installation-id': { type: 'integer', minimum: 1, description: 'Id of its installation.' },
        'private-key': { ...TEXT, description: 'File with its private key (PEM).' },
      },
      required: ['client-id', 'installation-id', 'private-key'],
      additionalProperties: false,
      description: 'GitHub App to log in with.',
    },
    token: { ...TEXT, description: 'File with a personal access token, instead of `app`.' },
    'scale-sets': {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        properties: SCALE_SET_PROPERTIES,
        required: ['name', 'node-label'],
        additionalProperties: false,
        description: 'Runner scale sets, which the bridge creates.',
      },
      description: 'Runner scale sets, which the bridge creates.',
    },
  },
  required: ['name', 'url', 'scale-sets'],
  additionalProperties: false,
  description: 'Organizations, repositories and enterprises whose jobs are served.',
};

export const settingsSchema: JsonSchema = {
  type: 'object',
  properties: {
    installations: {
      type: 'array',
      items: INSTALLATION,
      description: 'Organizations, repositories and enterprises whose jobs are served.',
    },
  },
  required: ['installations'],
  additionalProperties: false,
  description: 'Settings of the bridge for GitHub Actions.',
};
