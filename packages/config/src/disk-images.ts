import {
  booleanAt,
  entriesAt,
  millisecondsAt,
  numberAt,
  objectAt,
  stringAt,
  stringsAt,
  textsAt,
  type Entry,
  isJsonObject,
  type JsonObject,
  type BootTestConfig,
  type DiskImageConfig,
  type ImageSourceConfig,
  hasImageTests,
  loadImageTests,
} from '@nodepool/core';
import type { ConfigDocument } from './document.js';
import type { ProblemReport } from './report.js';
import { splitWords } from './shell-words.js';
import { didYouMean } from './suggest.js';
import type { NodepoolConfig } from './types.js';

const REBUILD_AGE_MS = 86_400_000;
const BUILD_TIMEOUT_MS = 28_800_000;

/** Reads the disk images of a file, merged with their parents; problems are added to the report. */
export function loadDiskImages(document: ConfigDocument, report: ProblemReport): Map<string, DiskImageConfig> {
  const entries = new Map<string, Entry>();
  const root = isJsonObject(document.value) ? document.value : {};
  for (const entry of entriesAt(root, 'diskimages')) {
    if (entry.name !== '' && !entries.has(entry.name)) entries.set(entry.name, entry);
  }
  const inheritance = new Inheritance(document, report, entries);
  return new Map([...entries.values()].map((entry) => [entry.name, inheritance.resolve(entry)]));
}

/** Adds the build environment of the secure file. Children of an image do not inherit its secrets. */
export function mergeSecureEnvVars(
  images: Map<string, DiskImageConfig>,
  secure: ConfigDocument,
  report: ProblemReport,
): void {
  if (!isJsonObject(secure.value)) return;
  for (const { index, name, section } of entriesAt(secure.value, 'diskimages')) {
    const image = images.get(name);
    if (name !== '' && (image === undefined || image.abstract)) {
      report.at(secure, ['diskimages', index, 'name'], {
        expected: 'the name of a disk image that is built',
        found: `${JSON.stringify(name)}, which ${image === undefined ? 'is not in the main file' : 'is abstract'}`,
        hint: image === undefined ? didYouMean(name, images.keys()) : 'name the images that inherit from it',
      });
    } else if (image !== undefined) {
      images.set(name, { ...image, envVars: { ...image.envVars, ...textsAt(section, 'env-vars') } });
    }
  }
}

/** Returns the formats in which an image is built, sorted: its own, and those that its providers' clouds require. */
export function requiredFormats(config: NodepoolConfig, image: string): readonly string[] {
  const formats = new Set(config.diskImages.get(image)?.formats);
  for (const provider of config.providers.values()) {
    if (provider.imageFormat !== undefined && provider.diskImages.has(image)) formats.add(provider.imageFormat);
  }
  return [...formats].sort();
}

class Inheritance {
  private readonly resolved = new Map<string, DiskImageConfig>();
  private readonly inProgress = new Set<string>();

  constructor(
    private readonly document: ConfigDocument,
    private readonly report: ProblemReport,
    private readonly entries: ReadonlyMap<string, Entry>,
  ) {}

  resolve(entry: Entry): DiskImageConfig {
    const known = this.resolved.get(entry.name);
    if (known !== undefined) return known;
    this.inProgress.add(entry.name);
    const parent = this.parentOf(entry);
    this.checkCommand(entry);
    this.checkSource(entry);
    const image = readDiskImage(entry, parent, this.releaseOf(entry));
    this.inProgress.delete(entry.name);
    this.resolved.set(entry.name, image);
    return image;
  }

  private parentOf(entry: Entry): DiskImageConfig | undefined {
    const name = nonEmpty(stringAt(entry.section, 'parent'));
    if (name === undefined) return undefined;
    const parent = this.entries.get(name);
    const path = ['diskimages', entry.index, 'parent'];
    if (parent === undefined) {
      const others = [...this.entries.keys()].filter((each) => each !== entry.name);
      this.report.at(this.document, path, {
        expected: 'the name of another disk image in `diskimages`',
        found: `${JSON.stringify(name)}, which does not exist`,
        hint: didYouMean(name, others),
      });
      return undefined;
    }
    if (this.inProgress.has(name)) {
      const chain = [...this.inProgress].slice([...this.inProgress].indexOf(name));
      this.report.at(this.document, path, {
        expected: 'a parent that does not inherit from the image itself',
        found: `the cycle ${[...chain, name].join(' → ')}`,
      });
      return undefined;
    }
    return this.resolve(parent);
  }

  /** Reports a command and elements that cannot be split into words, with which every build would fail. */
  private checkCommand({ index, section }: Entry): void {
    const path = ['diskimages', index];
    const command = nonEmpty(stringAt(section, 'dib-cmd'));
    if (command !== undefined && wordsOf(command)?.length === 0) {
      this.report.at(this.document, [...path, 'dib-cmd'], { expected: 'the name of a program' });
    }
    const texts = [
      { at: ['dib-cmd'], text: command ?? '' },
      ...(stringsAt(section, 'elements') ?? []).map((text, each) => ({ at: ['elements', each], text })),
    ];
    for (const { at, text } of texts) {
      if (wordsOf(text) !== undefined) continue;
      this.report.at(this.document, [...path, ...at], { expected: 'words with closed quotes, as in a shell' });
    }
  }

  /** Reports a checksum whose address proves nothing: a host on the way could change it together with the image. */
  private checkSource({ index, section }: Entry): void {
    const sha256 = stringAt(objectAt(section, 'source') ?? {}, 'sha256');
    if (sha256?.startsWith('http:') !== true) return;
    this.report.at(this.document, ['diskimages', index, 'source', 'sha256'], {
      expected: 'the 64 digits of the checksum, or an address with https',
      hint: 'over http, the checksum could be changed on the way',
    });
  }

  /** Returns a numeric release as written: `8.0` and 8 are different releases. */
  private releaseOf({ index, section }: Entry): string | undefined {
    const value = section['release'];
    if (typeof value !== 'number') return nonEmpty(stringAt(section, 'release'));
    return this.document.writtenAt(['diskimages', index, 'release']) ?? String(value);
  }
}

/** Returns undefined if a quote is not closed. */
function wordsOf(text: string): readonly string[] | undefined {
  try {
    return splitWords(text);
  } catch {
    return undefined;
  }
}

/** Merges own values over the parent's over the defaults; elements and environment variables are combined. */
function readDiskImage(
  { name, section }: Entry,
  parent: DiskImageConfig | undefined,
  release: string | undefined,
): DiskImageConfig {
  const text = (key: string): string | undefined => nonEmpty(stringAt(section, key));
  const tests = loadImageTests(section, parent?.tests);
  const duration = (key: string): number | undefined =>
    numberAt(section, key) === 0 ? undefined : millisecondsAt(section, key);
  return {
    name,
    abstract: booleanAt(section, 'abstract') ?? false,
    parent: text('parent'),
    formats: namesAt(section, 'formats') ?? parent?.formats ?? [],
    keepFormats: namesAt(section, 'keep-formats') ?? parent?.keepFormats ?? [],
    deleteAfterUpload: booleanAt(section, 'delete-after-upload') ?? parent?.deleteAfterUpload ?? false,
    rebuildAgeMs: duration('rebuild-age') ?? parent?.rebuildAgeMs ?? REBUILD_AGE_MS,
    release: release ?? parent?.release,
    buildTimeoutMs: duration('build-timeout') ?? parent?.buildTimeoutMs ?? BUILD_TIMEOUT_MS,
    elements: [...(parent?.elements ?? []), ...(stringsAt(section, 'elements') ?? [])],
    envVars: { ...parent?.envVars, ...textsAt(section, 'env-vars') },
    pause: booleanAt(section, 'pause') ?? parent?.pause ?? false,
    username: text('username') ?? parent?.username ?? 'zuul',
    pythonPath: text('python-path') ?? parent?.pythonPath ?? 'auto',
    shellType: text('shell-type') ?? parent?.shellType,
    dibCmd: text('dib-cmd') ?? parent?.dibCmd ?? 'disk-image-create',
    metadata: objectAt(section, 'metadata') === undefined ? (parent?.metadata ?? {}) : textsAt(section, 'metadata'),
    ...withoutUndefined({
      bootTest: bootTestOf(section, parent?.bootTest),
      source: sourceOf(section) ?? parent?.source,
    }),
    ...(hasImageTests(tests) ? { tests } : {}),
  };
}

/** Returns undefined for an empty list, so that the parent's list applies. */
function namesAt(section: JsonObject, key: string): readonly string[] | undefined {
  const names = stringsAt(section, key);
  return names === undefined || names.length === 0 ? undefined : [...new Set(names)];
}

/** Returns undefined for an empty string, which counts as absent. */
export function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

const BOOT_TEST = { timeoutMs: 300_000, memory: 1024, cpus: 1, commandTimeoutMs: 300_000 } as const;

/** Returns the boot test of a section; `false` removes that of the parent. */
function bootTestOf(section: JsonObject, inherited: BootTestConfig | undefined): BootTestConfig | undefined {
  const value = section['boot-test'];
  if (value === undefined || value === null) return inherited;
  if (value === false) return undefined;
  const settings = isJsonObject(value) ? value : {};
  return {
    timeoutMs: millisecondsAt(settings, 'timeout') ?? BOOT_TEST.timeoutMs,
    memory: numberAt(settings, 'memory') ?? BOOT_TEST.memory,
    cpus: numberAt(settings, 'cpus') ?? BOOT_TEST.cpus,
    kvm: booleanAt(settings, 'kvm') ?? true,
    command: stringAt(settings, 'command'),
    commandTimeoutMs: millisecondsAt(settings, 'command-timeout') ?? BOOT_TEST.commandTimeoutMs,
  };
}

/** Default limit of the size of a source. */
const SOURCE_MAX_GIB = 100;

function sourceOf(section: JsonObject): ImageSourceConfig | undefined {
  const source = objectAt(section, 'source');
  if (source === undefined) return undefined;
  const text = (key: string): string | undefined => nonEmpty(stringAt(source, key));
  const maxBytes = (numberAt(source, 'max-size') ?? SOURCE_MAX_GIB) * 2 ** 30;
  return { url: text('url'), path: text('path'), sha256: text('sha256'), format: text('format'), maxBytes };
}

/** Omits absent settings, so that a configuration without them equals one of an earlier release. */
function withoutUndefined<T extends object>(settings: T): Partial<T> {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as Partial<T>;
}
