/** Checks references between parts of the file: duplicate names and unknown names. */

import type { DiskImageConfig, ProviderConfigContext, Entry, JsonObject } from '@nodepool/core';
import { entriesAt, entryNamed, objectAt, stringAt, isJsonObject } from '@nodepool/core';
import type { ConfigDocument } from './document.js';
import type { KeyPath } from './problems.js';
import type { ProblemReport, ProblemText } from './report.js';
import { didYouMean } from './suggest.js';

/** Names that must be unique at the top of the file. */
const UNIQUE_LISTS: readonly (readonly [list: string, key: string])[] = [
  ['labels', 'name'],
  ['diskimages', 'name'],
  ['providers', 'name'],
  ['drivers', 'name'],
  ['tenant-resource-limits', 'tenant-name'],
];

export function checkUniqueNames(document: ConfigDocument, report: ProblemReport): void {
  if (!isJsonObject(document.value)) return;
  for (const [list, key] of UNIQUE_LISTS) {
    checkUnique(document.value, list, key, (path, problem) => report.at(document, path, problem));
  }
  const shares = objectAt(document.value, 'fair-shares');
  if (shares === undefined) return;
  const below: Report = (path, problem) => report.at(document, ['fair-shares', ...path], problem);
  checkUnique(shares, 'tenants', 'tenant-name', below);
  for (const { index, section } of entriesAt(shares, 'tenants')) {
    checkUnique(section, 'projects', 'project-name', (path, problem) => below(['tenants', index, ...path], problem));
  }
}

type Report = (path: KeyPath, problem: ProblemText) => void;

function checkUnique(section: JsonObject, list: string, key: string, report: Report): void {
  const first = new Map<string, number>();
  for (const entry of entriesAt(section, list)) {
    const name = stringAt(entry.section, key);
    if (name === undefined) continue;
    const before = first.get(name);
    if (before === undefined) first.set(name, entry.index);
    else {
      const found = `${JSON.stringify(name)}, which ${list}[${before}] already has`;
      report([list, entry.index, key], { expected: `a ${key} that no other entry of \`${list}\` has`, found });
    }
  }
}

/** Reports references of a provider's section, for any driver, to missing names. Paths start at the section. */
export function checkProviderReferences(
  section: JsonObject,
  context: Pick<ProviderConfigContext, 'diskImages' | 'labels'>,
  report: Report,
  warn: Report,
): void {
  for (const list of ['diskimages', 'cloud-images', 'pools']) checkUnique(section, list, 'name', report);
  checkDiskImages(section, context, report);
  for (const pool of entriesAt(section, 'pools')) {
    const below: Report = (path, problem) => report(['pools', pool.index, ...path], problem);
    checkUnique(pool.section, 'labels', 'name', below);
    for (const label of entriesAt(pool.section, 'labels')) {
      const at = (path: KeyPath): KeyPath => ['labels', label.index, ...path];
      checkLabel(label, section, context, (path, problem) => below(at(path), problem));
      checkListed(label, section, context, (path, problem) => warn(['pools', pool.index, ...at(path)], problem));
    }
  }
}

function checkDiskImages(
  section: JsonObject,
  context: Pick<ProviderConfigContext, 'diskImages'>,
  report: Report,
): void {
  for (const { index, name } of entriesAt(section, 'diskimages')) {
    const image = context.diskImages.get(name);
    if (name === '' || image?.abstract === false) continue;
    report(['diskimages', index, 'name'], {
      expected: 'the name of a disk image in the top-level `diskimages`',
      found: `${JSON.stringify(name)}, which ${image === undefined ? 'is not there' : 'is abstract and never built'}`,
      hint: didYouMean(name, context.diskImages.keys()),
    });
  }
}

function checkLabel(
  label: Entry,
  provider: JsonObject,
  context: Pick<ProviderConfigContext, 'diskImages' | 'labels'>,
  report: Report,
): void {
  if (label.name !== '' && !context.labels.has(label.name)) {
    report(['name'], {
      expected: 'the name of a label in the top-level `labels`',
      found: `${JSON.stringify(label.name)}, which is not there`,
      hint: didYouMean(label.name, context.labels) ?? 'add it there',
    });
  }
  checkImage(label, 'diskimage', provider, 'diskimages', context.diskImages, report);
  checkImage(label, 'cloud-image', provider, 'cloud-images', NO_IMAGES, report);
}

const NO_IMAGES: ReadonlyMap<string, DiskImageConfig> = new Map();

/** Reports an image that neither the provider lists nor `built` contains. */
function checkImage(
  label: Entry,
  key: string,
  provider: JsonObject,
  list: string,
  built: ReadonlyMap<string, DiskImageConfig>,
  report: Report,
): void {
  const image = stringAt(label.section, key);
  if (image === undefined || entryNamed(provider, list, image) !== undefined) return;
  if (built.get(image)?.abstract === false) return;
  const known = entriesAt(provider, list).map((entry) => entry.name);
  report([key], {
    expected: `the name of an image in \`${list}\` of the provider`,
    found: `${JSON.stringify(image)}, which is not there`,
    hint: didYouMean(image, known) ?? `add it to \`${list}\` of the provider`,
  });
}

/** Warns of a disk image that the provider does not list: operators remove images so to wind a provider down. */
function checkListed(
  label: Entry,
  provider: JsonObject,
  { diskImages }: Pick<ProviderConfigContext, 'diskImages'>,
  warn: Report,
): void {
  const image = stringAt(label.section, 'diskimage');
  if (image === undefined || diskImages.get(image)?.abstract !== false) return;
  if (entryNamed(provider, 'diskimages', image) !== undefined) return;
  warn(['diskimage'], {
    expected: 'the name of an image in `diskimages` of the provider',
    found: `${JSON.stringify(image)}, which is not there`,
    hint: 'the provider declines requests for this label until the image is listed',
  });
}
