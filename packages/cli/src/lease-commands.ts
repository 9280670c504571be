/** The command `lease`. */

import { createRequire } from 'node:module';
import { Argument, Option, type Command } from 'commander';
import type * as Lease from './commands/lease.js';
import { addGatewayOptions, duration, example, formatOption, wholeNumber, type Outcome } from './options.js';
import type { ProcessIo } from './process-io.js';

const load = createRequire(__filename);
const ACTIONS: readonly Lease.LeaseAction[] = ['create', 'list', 'show', 'renew', 'release', 'ssh'];

export function addLeaseCommand(program: Command, io: ProcessIo, outcome: Outcome): void {
  const lease = program
    .command('lease')
    .description('lease nodes through a gateway, without ZooKeeper')
    .addArgument(new Argument('<action>', 'action').choices(ACTIONS))
    .argument('[name...]', 'labels for create, else ids; for ssh an id, -- and a command');
  addGatewayOptions(lease)
    .option('--count <n>', 'create: nodes of each label', wholeNumber(1, 1000))
    .option('--name <name>', 'create, list: name of the lease')
    .option('--priority <n>', 'create: 0 to 999, lower is served first', wholeNumber(0, 999))
    .option('--lifetime <duration>', 'create, renew: time until it expires, e.g. 90m', duration)
    .option('--data <json>', 'create: data of the lease')
    .option('--key <text>', 'create: return the same lease for the same key')
    .option('--wait', 'create: wait for the nodes')
    .option('--timeout <duration>', 'create: limit of the wait', duration)
    .addOption(new Option('--state <state>', 'list: state').choices(['waiting', 'ready', 'ending', 'ended']))
    .addOption(
      new Option('--outcome <outcome>', 'release: result').choices(['success', 'failure', 'cancelled', 'unknown']),
    )
    .option('--comment <text>', 'release: a remark')
    .option('--hold <duration>', 'release: hold the nodes for inspection', duration)
    .option('--node <id>', 'ssh: node (default: the first)')
    .option('--user <name>', 'ssh: login name (default: that of the node)')
    .option('--identity <file>', 'ssh: private key (default: those of ssh)')
    .addOption(formatOption(['pretty', 'json', 'name']))
    .addHelpText(
      'after',
      '\nExit status: 0 done, 1 refused, 2 usage, 3 --timeout has passed, 4 all nodes are lost; of ssh, its own.',
    )
    .action(async (action: Lease.LeaseAction, names: string[], options: Lease.LeaseOptions) => {
      outcome.exitCode = await (load('./commands/lease.js') as typeof Lease).lease(io, action, names, options);
    });
  example(lease, 'nodepool lease create debian-12 --wait --lifetime 2h -o name');
}
