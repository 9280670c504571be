/** The schema of a provider of this driver; the reference page is generated from it. */

import { providerSchema, type JsonSchema } from '@nodepool/core';
import { DEFAULTS } from './config.js';

const text: JsonSchema = { type: 'string', minLength: 1 };

const port: JsonSchema = { type: 'integer', minimum: 1, maximum: 65_535 };

const node: JsonSchema = {
  type: 'object',
  description: 'A machine. Name, user and port together are unique.',
  additionalProperties: false,
  required: ['name', 'labels'],
  properties: {
    name: { ...text, description: 'Host name or address of the machine.' },
    labels: {
      description: 'Labels of the machine: a list, or a string with spaces.',
      type: ['array', 'string'],
      items: text,
      minItems: 1,
      minLength: 1,
    },
    username: { ...text, default: DEFAULTS.username, description: 'User name for logins.' },
    timeout: {
      type: 'integer',
      minimum: 1,
      default: DEFAULTS.timeoutSeconds,
      description: 'Seconds until the port must answer with its host keys.',
    },
    'connection-type': {
      ...text,
      default: DEFAULTS.connectionType,
      description: 'Connection type: `ssh`, `winrm`, `network_cli`, …',
    },
    'connection-port': { ...port, description: 'Login port. Default: 22; for `winrm` 5986.' },
    'ssh-port': { ...port, description: 'Former name of `connection-port`.' },
    'host-key': {
      description: 'Required host keys, each as `<type> <base64>`. Default: any.',
      type: ['array', 'string'],
      items: text,
    },
    'host-key-checking': {
      type: 'boolean',
      default: true,
      description: 'If false, the machine always counts as usable.',
    },
    'python-path': {
      type: 'string',
      default: DEFAULTS.pythonPath,
      description: 'Python interpreter; `auto` lets Ansible find it.',
    },
    'shell-type': { type: 'string', description: 'Shell, by its name in Ansible.' },
    'max-parallel-jobs': {
      type: 'integer',
      minimum: 0,
      default: DEFAULTS.slots,
      description: 'Nodes on the machine at the same time.',
    },
  },
};

export const schema: JsonSchema = providerSchema({
  description: 'A provider of the driver "static": existing machines.',
  compatible: true,
  defaults: { bootTimeoutSeconds: DEFAULTS.timeoutSeconds, rateUnit: 'calls-per-second' },
  provider: { without: ['launch-retries', 'launch-timeout', 'boot-timeout', 'rate'] },
  pool: {
    without: ['host-key-checking', 'use-internal-ip', 'labels'],
    properties: { nodes: { type: 'array', items: node, description: 'The machines of the pool.' } },
  },
});
