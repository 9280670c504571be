/** The calls of `nodepool-garm`: GARM passes the command in variables, and reads the answer from stdout. */

import { packageVersion } from '@nodepool/core/package-version';
import { reasonOf, printable } from '@nodepool/core';
import { Command, CommanderError } from 'commander';
import { ExitCode } from '../command-context.js';
import { gatewayClient, gatewayRefusal } from '../gateway-access.js';
import { programOutput } from '../process-io.js';
import { GarmError, INTERFACE_VERSIONS, readCall, type GarmCall } from './call.js';
import { faultOf } from './instance.js';
import { GarmProvider, type ProviderIo } from './provider.js';
import { CONFIG_SCHEMA, EXTRA_SPECS_SCHEMA, readExtraSpecs, readSettings } from './settings.js';

/** Path of programs if GARM passes none on, which is the default of `environment_variables`. */
const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Runs one call. Resolves with the exit code. */
export async function run(args: readonly string[], given: ProviderIo): Promise<number> {
  const io = { ...given, env: { PATH: DEFAULT_PATH, ...given.env } };
  const { stdout, stderr } = io.streams;
  let command = '';
  try {
    createProgram(io).parse([...args], { from: 'user' });
    const call = readCall(io.env);
    ({ command } = call);
    const answer = await perform(io, call);
    if (answer !== undefined) stdout.write(typeof answer === 'string' ? answer : JSON.stringify(answer));
    return ExitCode.done;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.done : ExitCode.usage;
    const reason = reasonOf(gatewayRefusal(error));
    stderr.write(`nodepool-garm: ${printable(reason)}\n`);
    // GARM shows the fault of a creation with the runner.
    if (command === 'CreateInstance')
      stdout.write(JSON.stringify({ status: 'error', provider_fault: faultOf(reason) }));
    return error instanceof GarmError ? error.exitCode : ExitCode.refused;
  }
}

async function perform(io: ProviderIo, call: GarmCall): Promise<unknown> {
  switch (call.command) {
    case 'GetVersion':
      return packageVersion(__dirname);
    case 'GetSupportedInterfaceVersions':
      return INTERFACE_VERSIONS;
    case 'GetConfigJSONSchema':
      return CONFIG_SCHEMA;
    case 'GetExtraSpecsJSONSchema':
      return EXTRA_SPECS_SCHEMA;
    case 'ValidatePoolInfo':
      await readSettings(call.configFile);
      await readExtraSpecs(call.extraSpecs);
      return undefined;
    default:
      return await operate(io, call);
  }
}

async function operate(io: ProviderIo, call: GarmCall): Promise<unknown> {
  const settings = await readSettings(call.configFile);
  const client = gatewayClient(io, { gateway: settings.gateway, tokenFile: settings.tokenFile });
  const provider = new GarmProvider(io, client, call, settings);
  switch (call.command) {
    case 'CreateInstance':
      return await provider.create();
    case 'GetInstance':
      return await provider.get();
    case 'ListInstances':
      return await provider.list();
    case 'DeleteInstance':
      await provider.delete();
      return undefined;
    case 'RemoveAllInstances':
      await provider.removeAll();
      return undefined;
    case 'StartInstance':
      await provider.start();
      return undefined;
    default:
      await provider.stop();
      return undefined;
  }
}

/** Returns the command line, which has only the options for people. */
function createProgram({ streams }: ProviderIo): Command {
  return new Command('nodepool-garm')
    .description('An external provider of GARM: runs GitHub runners on leased nodes.')
    .version(packageVersion(__dirname))
    .addHelpText('after', HELP)
    .exitOverride()
    .configureOutput(programOutput(streams));
}

const HELP = `
GARM calls the program with the command in GARM_COMMAND and the configuration file in GARM_PROVIDER_CONFIG_FILE.

Example:
  $ GARM_COMMAND=ListInstances GARM_PROVIDER_CONFIG_FILE=/etc/garm/nodepool.yaml \\
      GARM_CONTROLLER_ID=... GARM_POOL_ID=... nodepool-garm
`;
