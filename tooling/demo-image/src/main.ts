/**
 * The demonstration of the builder: builds and uploads an image, uses it for a node, replaces it, and goes back to it.
 * The exit status is 0 only if every step succeeded.
 */

import { parseArgs } from 'node:util';
import { FAKE_DIB_COMMAND } from '@nodepool/fake-dib';
import { interruption, Narrator } from '@nodepool/harness';
import { runDemonstration } from './demonstration.js';
import { PROVIDER } from './site.js';
import { DemoEnvironment } from './environment.js';

const HELP = `pnpm demo:image [options]

Builds a real Debian image with nodepool-builder, uploads it to an OpenStack, launches a node from it with
nodepool-launcher, makes a second image, deletes its upload, and shows the launcher fall back to the first one.
The OpenStack is the one that OS_CLIENT_CONFIG_FILE and OS_CLOUD (default: real) name.

  --simulated      a simulated OpenStack instead
  --stand-in       a stand-in for disk-image-create instead of a real build: seconds, and not as root
  --second-real    the second image is built for real, too; else with the stand-in
  --flavor NAME    default m1.small
  --network NAME   default private
  --keep           leave the folder with images and logs
`;

const LEFTOVER_HINT = `Servers and images with the property nodepool_provider_name=${PROVIDER} may be left in the cloud.\n`;

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      simulated: { type: 'boolean', default: false },
      'stand-in': { type: 'boolean', default: false },
      'second-real': { type: 'boolean', default: false },
      flavor: { type: 'string', default: 'm1.small' },
      network: { type: 'string', default: 'private' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const interrupted = interruption();
  const narrator = new Narrator((line) => process.stdout.write(`${line}\n`));
  const { simulated, flavor, network, keep, 'stand-in': standIn, 'second-real': secondReal } = values;
  const dibCmd = standIn ? FAKE_DIB_COMMAND : undefined;
  let environment: DemoEnvironment | undefined;
  try {
    environment = await DemoEnvironment.build({ simulated, flavor, network, keep, dibCmd }, narrator, interrupted);
    await runDemonstration(environment, { standIn, secondReal }, narrator, interrupted);
    narrator.say('both images have completed their life cycle');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(interrupted.aborted ? '\ninterrupted\n' : `\nThe demonstration failed: ${reason}\n`);
    if (environment !== undefined && !simulated) process.stderr.write(LEFTOVER_HINT);
    process.exitCode = interrupted.aborted ? 130 : 1;
  } finally {
    if (environment !== undefined) {
      narrator.say(keep ? `stopping; images and logs are kept in ${environment.folder}` : 'stopping');
      await environment.clear();
    }
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}; try --help\n`);
  process.exitCode = 2;
});
