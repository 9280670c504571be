/** The schema of `github.yaml`. The reference page is made from it. */

import type { JsonObject, JsonSchema } from '@nodepool/core';

/** Names are parts of paths in ZooKeeper and of the names of runners. */
const NAME: JsonObject = { type: 'string', minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]*$' };
const TEXT: JsonObject = { type: 'string', minLength: 1 };
const COUNT: JsonObject = { type: 'integer', minimum: 0, maximum: 100_000 };
const SECONDS: JsonObject = { type: 'integer', minimum: 1, maximum: 86_400 };

const SCALE_SET_PROPERTIES: JsonObject = {
  name: { ...NAME, description: 'Name of the scale set in GitHub.' },
  labels: {
    type: 'array',
    minItems: 1,
    items: TEXT,
    description: 'Labels in GitHub. A job needs all labels of its `runs-on` in the scale set. Default: the name.',
  },
  'node-label': { ...TEXT, description: 'Label of the nodes in Nodepool.' },
  'runner-group': { ...TEXT, default: 'default', description: 'Runner group in GitHub.' },
  'min-runners': {
    ...COUNT,
    default: 0,
    description: 'Number of runners that wait for jobs, in addition to busy ones.',
  },
  'max-runners': { ...COUNT, default: 100, description: 'Maximum number of runners.' },
  priority: {
    type: 'integer',
    minimum: 0,
    maximum: 999,
    default: 200,
    description: 'Priority of the node requests; lower is served first.',
  },
  tenant: { ...TEXT, description: 'Tenant whose resource limits apply. Default: none.' },
  user: { ...TEXT, description: 'User to log in as. Default: that of the image.' },
  identity: { ...TEXT, description: 'File with the private key for ssh. Default: keys of the agent and of `~/.ssh`.' },
  'runner-folder': {
    ...TEXT,
    default: 'actions-runner',
    description: 'Folder of the runner on the image, with `run.sh`; relative to the home folder.',
  },
  'work-folder': { ...TEXT, default: '_work', description: 'Folder for the files of jobs, relative to the runner.' },
  environment: {
    type: 'object',
    propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
    additionalProperties: { type: 'string' },
    description: 'Environment variables of the runner and of its jobs.',
  },
  'hook-before-job': { ...TEXT, description: 'Script on the image that the runner runs before the job.' },
  'hook-after-job': { ...TEXT, description: 'Script on the image that the runner runs after the job.' },
  'start-timeout': {
    ...SECONDS,
    default: 180,
    description: 'Time in which a runner must connect to GitHub after its node is ready, in seconds.',
  },
  'idle-timeout': {
    ...SECONDS,
    default: 60,
    description: 'Time after which a runner without a job is removed if it is not needed, in seconds.',
  },
};

const INSTALLATION: JsonObject = {
  type: 'object',
  properties: {
    name: { ...NAME, description: 'Name of the installation in messages and metrics.' },
    url: {
      ...TEXT,
      description: 'Page of the organization, the repository or the enterprise, on github.com or an Enterprise Server.',
    },
    app: {
      type: 'object',
      properties: {
        'client-id': { ...TEXT, description: 'Client id of the App.' },
        'installation-id': { type: 'integer', minimum: 1, description: 'Id of the installation of the App.' },
        'private-key': { ...TEXT, description: 'File with the private key of the App (PEM).' },
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
        description: 'A runner scale set.',
      },
      description: 'Runner scale sets, which the bridge creates in GitHub.',
    },
  },
  required: ['name', 'url', 'scale-sets'],
  additionalProperties: false,
  description: 'An organization, a repository or an enterprise in GitHub.',
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
