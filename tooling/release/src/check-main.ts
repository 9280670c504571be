/** Implements `pnpm release:check`: packs every public package, checks its content, installs it alone, and runs it. */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runCommandLine } from '@nodepool/harness';
import { createRecordList, toTable, type ListColumn } from '@nodepool/store';
import { checkPackage, type PackageReport } from './check-package.js';
import { manifestRules } from './checks/manifest.js';
import { build, copyWorkspace } from './copy.js';
import { pack, type PackedPackage } from './pack.js';
import { Progress } from './progress.js';
import { repositoryUrl } from './repository.js';
import { packageNamed, readWorkspace, withNeeds, workspaceRoot } from './workspace.js';

const HELP = `Usage: pnpm release:check [options] [PACKAGE...]

Packs public packages as they would be published, and checks each: package.json, files, source maps, types in both
module systems. Then installs it alone in an empty folder, runs it, and checks its exports, and the licences, origins
and install scripts of all dependencies. PACKAGE is a name, with or without its scope; default: all.

  --repository URL  the repository that packages must name, for provenance; default: that of GITHUB_SERVER_URL and
                    GITHUB_REPOSITORY; without any, this is not checked
  --signatures      also verify the registry's signatures of all dependencies; needs the internet
  --sbom FOLDER     also write the bill of materials of each installation there (CycloneDX)
  --keep            keep the packed and installed files, and print their path
  --help            this text

Exit status: 0 without findings, 1 with findings, 2 for wrong usage.
`;

const COLUMNS: readonly ListColumn<PackageReport>[] = [
  { field: 'package', header: 'Package', value: ({ packed }) => packed.source.name },
  { field: 'version', header: 'Version', value: ({ packed }) => packed.source.version },
  { field: 'files', header: 'Files', value: ({ packed }) => packed.files.length },
  { field: 'size', header: 'KiB', value: ({ packed }) => Math.round(packed.bytes / 1024) },
  { field: 'installed', header: 'Installs', value: ({ installed }) => installed ?? null },
  { field: 'found', header: 'Found', value: ({ findings }) => (findings.length === 0 ? 'ok' : findings.length) },
];

interface Selection {
  /** Empty for all packages. */
  readonly names: readonly string[];
  readonly repository: string | undefined;
  readonly signatures: boolean;
  /** Folder for the bills of materials; undefined for none. */
  readonly sbom: string | undefined;
}

async function checkAll({ names, repository, signatures, sbom }: Selection, scratch: string): Promise<boolean> {
  const progress = new Progress((text) => void process.stdout.write(text));
  const workspace = await copyWorkspace(workspaceRoot(), join(scratch, 'checkout'));
  const chosen = names.length === 0 ? workspace.packages : names.map((name) => packageNamed(workspace, name));
  const involved = withNeeds(workspace, ...chosen.map(({ name }) => name));
  await build(workspace.root, involved);
  progress.say('built a copy of the checkout');
  const all = await pack(workspace.root, involved, join(scratch, 'packed'));
  const packed = new Map(all.map((each): [string, PackedPackage] => [each.source.name, each]));
  progress.say(`packed ${packed.size} packages`);
  if (repository === undefined)
    progress.say('not checked: the field "repository" and links to it (give --repository URL)');
  const rules = manifestRules(workspace, repository);
  if (sbom !== undefined) await mkdir(sbom, { recursive: true });
  const reports: PackageReport[] = [];
  for (const { name } of chosen) {
    const needed = withNeeds(workspace, name).flatMap((each) => packed.get(each.name) ?? []);
    const subject = packed.get(name);
    if (subject === undefined) continue;
    const report = await checkPackage(subject, needed, rules, { scratch, signatures, sbom });
    progress.say(`${name}: ${report.findings.length === 0 ? 'ok' : `${report.findings.length} found`}`);
    for (const { check, message } of report.findings) progress.text(`        ${check}: ${message}\n`);
    reports.push(report);
  }
  progress.text(`${toTable(createRecordList(COLUMNS, 'all', reports))}\n`);
  return reports.every(({ findings }) => findings.length === 0);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      repository: { type: 'string' },
      signatures: { type: 'boolean', default: false },
      sbom: { type: 'string' },
      keep: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const workspace = await readWorkspace(workspaceRoot());
  for (const name of positionals) packageNamed(workspace, name);
  const scratch = await mkdtemp(join(tmpdir(), 'nodepool-release-check-'));
  try {
    const { signatures, sbom, repository = repositoryUrl(process.env) } = values;
    const passed = await checkAll({ names: positionals, repository, signatures, sbom }, scratch);
    if (!passed) process.exitCode = 1;
  } finally {
    if (values.keep) process.stdout.write(`kept in ${scratch}\n`);
    else await rm(scratch, { recursive: true, force: true });
  }
}

runCommandLine(HELP, main);
