/** The options and help of the commands for images and for a provider's records. */

import { createRequire } from 'node:module';
import { Argument, type Command } from 'commander';
import type * as AlienImageList from './commands/alien-image-list.js';
import type * as DibImageDelete from './commands/dib-image-delete.js';
import type * as Erase from './commands/erase.js';
import type * as ExportImageData from './commands/export-image-data.js';
import type * as ImageBuild from './commands/image-build.js';
import type * as ImageDelete from './commands/image-delete.js';
import type * as ImageReview from './commands/image-review.js';
import type * as ImagePause from './commands/image-pause.js';
import type * as ImportImageData from './commands/import-image-data.js';
import type * as Info from './commands/info.js';
import type * as InstallationId from './commands/installation-id.js';
import type * as Orphans from './commands/orphans.js';
import type { ListOptions } from './lists/list-command.js';
import { addList, addListOptions, example, formatOption, type FormatOption, type OnStore } from './options.js';

const load = createRequire(__filename);

export function addImageCommands(program: Command, onStore: OnStore): void {
  addLists(program, onStore);
  addImageActions(program, onStore);
  addDeletions(program, onStore);
  addImageData(program, onStore);
  addProviderCommands(program, onStore);
}

function addLists(program: Command, onStore: OnStore): void {
  const uploads = addList(program, onStore, 'image-list', ['state', 'provider', 'image']);
  uploads.description('list the uploaded images');
  example(uploads, 'nodepool image-list --state ready --detail');
  const builds = addList(program, onStore, 'dib-image-list', ['state', 'image'], false);
  builds.description('list the builds of images');
  example(builds, 'nodepool dib-image-list --format json');
  const status = addList(program, onStore, 'image-status', ['image']);
  status.description('list pauses, requested builds and failed builds of images');
  example(status, 'nodepool image-status');
  const aliens = addListOptions(program.command('alien-image-list'), { detail: false, watch: false })
    .description("list images in clouds with Nodepool's tags but no record")
    .argument('[provider]', 'provider (default: all)')
    .action((provider: string | undefined, options: ListOptions) =>
      onStore(
        (context) =>
          (load('./commands/alien-image-list.js') as typeof AlienImageList).alienImageList(context, provider, options),
        { drivers: true },
      ),
    );
  example(aliens, 'nodepool alien-image-list my-cloud');
}

function addImageActions(program: Command, onStore: OnStore): void {
  const build = program
    .command('image-build')
    .description('request a build, after a pause if the image is paused')
    .argument('<image>', 'name of the disk image')
    .action((image: string) =>
      onStore((context) => (load('./commands/image-build.js') as typeof ImageBuild).imageBuild(context, image)),
    );
  example(build, 'nodepool image-build debian-12');
  const pause = program
    .command('image-pause')
    .description('pause the builds of an image')
    .argument('<image>', 'name of the disk image')
    .action((image: string) =>
      onStore((context) => (load('./commands/image-pause.js') as typeof ImagePause).imagePause(context, image)),
    );
  example(pause, 'nodepool image-pause debian-12');
  const unpause = program
    .command('image-unpause')
    .description('resume the builds of an image')
    .argument('<image>', 'name of the disk image')
    .action((image: string) =>
      onStore((context) => (load('./commands/image-pause.js') as typeof ImagePause).imageUnpause(context, image)),
    );
  example(unpause, 'nodepool image-unpause debian-12');
  const actions: readonly ImageReview.ReviewAction[] = ['promote', 'reject', 'rollback', 'pin', 'unpin', 'revoke'];
  const review = program
    .command('image')
    .description('decide which upload serves requests, whatever tests say')
    .addArgument(new Argument('<action>', 'what to do').choices(actions))
    .argument('<image>', 'name of the disk image')
    .option('--provider <name>', 'only for this provider')
    .option('--build <id>', 'id of the build (default: the candidate; pin: the current one); required for revoke')
    .option('--reason <text>', 'reason, for operators')
    .option('--force', 'reject, revoke: also the only usable upload', false)
    .action((action: ImageReview.ReviewAction, image: string, options: ImageReview.ReviewOptions) =>
      onStore((context) =>
        (load('./commands/image-review.js') as typeof ImageReview).imageReview(context, action, image, options),
      ),
    );
  example(review, 'nodepool image rollback debian-12 --reason "jobs cannot resolve names"');
}

function addDeletions(program: Command, onStore: OnStore): void {
  const upload = program
    .command('image-delete')
    .description('mark an upload for deletion; refused while it is in progress')
    .requiredOption('--provider <name>', 'provider of the upload')
    .requiredOption('--image <name>', 'name of the disk image')
    .requiredOption('--upload-id <id>', 'id of the upload')
    .requiredOption('--build-id <id>', 'id of the build')
    .action((options: ImageDelete.ImageDeleteOptions) =>
      onStore((context) => (load('./commands/image-delete.js') as typeof ImageDelete).imageDelete(context, options)),
    );
  example(
    upload,
    'nodepool image-delete --provider my-cloud --image debian-12 --upload-id 0000000001 --build-id 3f5c0a…',
  );
  const build = program
    .command('dib-image-delete')
    .description('mark a build with files and uploads for deletion; refused while it is in progress')
    .argument('<id>', 'id of the build')
    .action((id: string) =>
      onStore((context) =>
        (load('./commands/dib-image-delete.js') as typeof DibImageDelete).dibImageDelete(context, id),
      ),
    );
  example(build, 'nodepool dib-image-delete debian-12-3f5c0a…');
}

function addImageData(program: Command, onStore: OnStore): void {
  const save = program
    .command('export-image-data')
    .description('back up the records of images')
    .argument('<file>', 'file to write, as JSON')
    .action((file: string) =>
      onStore((context) =>
        (load('./commands/export-image-data.js') as typeof ExportImageData).exportImageData(context, file),
      ),
    );
  example(save, 'nodepool export-image-data images.json');
  const restore = program
    .command('import-image-data')
    .description('restore the records of images, before a builder starts')
    .argument('<file>', 'output of export-image-data')
    .action((file: string) =>
      onStore((context) =>
        (load('./commands/import-image-data.js') as typeof ImportImageData).importImageData(context, file),
      ),
    );
  example(restore, 'nodepool import-image-data images.json');
}

function addProviderCommands(program: Command, onStore: OnStore): void {
  const info = program
    .command('info')
    .description('show the records of a provider')
    .argument('<provider>', 'name of the provider')
    .addOption(formatOption())
    .action((provider: string, options: FormatOption) =>
      onStore((context) => (load('./commands/info.js') as typeof Info).info(context, provider, options)),
    );
  example(info, 'nodepool info my-cloud');
  const erase = program
    .command('erase')
    .description('delete the records of a removed provider; resources in its cloud remain')
    .argument('<provider>', 'name of the provider')
    .option('--force', 'do not ask for confirmation', false)
    .action((provider: string, options: { force: boolean }) =>
      onStore((context) => (load('./commands/erase.js') as typeof Erase).erase(context, provider, options)),
    );
  example(erase, 'nodepool erase my-old-cloud');
  addOrphans(program, onStore);
  const installation = program
    .command('installation-id')
    .description('show or set the id in the tags of this installation')
    .option('--set <id>', 'new id, e.g. after the data in ZooKeeper was lost')
    .option('--force', 'replace an existing id without asking for confirmation', false)
    .action(({ set, force }: { set?: string; force: boolean }) =>
      onStore((context) =>
        (load('./commands/installation-id.js') as typeof InstallationId).installationId(context, { set, force }),
      ),
    );
  example(installation, 'nodepool installation-id --set 3f9c2b7a51d84e06');
}

function addOrphans(program: Command, onStore: OnStore): void {
  const actions: readonly Orphans.OrphanAction[] = ['list', 'adopt', 'delete', 'suspend', 'confirm'];
  const command = addListOptions(program.command('orphans'), { watch: false })
    .description('list, adopt or delete resources without a record; suspend or confirm their deletion')
    .addArgument(new Argument('<action>', 'what to do').choices(actions))
    .argument('[provider]', 'provider (default of list and confirm: all)')
    .option('--id <ids...>', 'adopt, delete: only these resources')
    .option('--force', 'delete, confirm: do not ask for confirmation', false)
    .option('--retire-ready', 'suspend: also replace ready nodes and repeat launches, e.g. of a restored state', false)
    .action((action: Orphans.OrphanAction, provider: string | undefined, options: Orphans.OrphanOptions) =>
      onStore(
        (context) => (load('./commands/orphans.js') as typeof Orphans).orphans(context, action, provider, options),
        { drivers: !['suspend', 'confirm'].includes(action) },
      ),
    );
  example(command, 'nodepool orphans list my-cloud');
}
