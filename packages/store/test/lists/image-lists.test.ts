import { describe, expect, it } from '@jest/globals';
import {
  dibImageList,
  imageList,
  imageStatus,
  toJsonObjects,
  toTable,
  type ImageStore,
  type RecordList,
} from '@nodepool/store';
import type { ImageBuild, ImageBuildFailure, ImageUpload } from '@nodepool/core';

const NOW = 1_795_173_777_012;
const SOON = { columns: 'short', now: NOW } as const;
const ALL = { columns: 'all', now: NOW } as const;

const COMMON = { username: 'zuul', python_path: 'auto', shell_type: null };

function build(over: Partial<ImageBuild>): ImageBuild {
  const state_time = NOW / 1000 - 93_784;
  const builder = { builder: 'nb01', builder_id: 'b' };
  return {
    ...COMMON,
    ...builder,
    image: 'debian',
    id: 'b1',
    state: 'ready',
    state_time,
    formats: ['qcow2', 'raw'],
    ...over,
  };
}

function upload(over: Partial<ImageUpload>): ImageUpload {
  return {
    ...COMMON,
    image: 'debian',
    build: 'b1',
    provider: 'cloud',
    id: '0000000001',
    state: 'ready',
    state_time: 1_795_173_715.4,
    external_id: 'image-1',
    external_name: 'debian-1795',
    format: 'qcow2',
    ...over,
  };
}

interface Images {
  readonly builds?: readonly ImageBuild[];
  readonly uploads?: readonly ImageUpload[];
  readonly paused?: readonly string[];
  readonly requested?: Readonly<Record<string, number>>;
  readonly building?: readonly string[];
  readonly failures?: Readonly<Record<string, ImageBuildFailure>>;
}

type Listed = Pick<
  ImageStore,
  'images' | 'builds' | 'uploads' | 'paused' | 'buildRequestedAt' | 'isBuilding' | 'lastBuildFailure'
>;

function images({
  builds = [],
  uploads = [],
  paused = [],
  requested = {},
  building = [],
  failures = {},
}: Images): Listed {
  const names = new Set([...builds.map(({ image }) => image), ...paused, ...Object.keys(requested)]);
  return {
    images: () => [...names].sort(),
    builds: (image) => builds.filter((each) => each.image === image),
    uploads: ({ image }) => uploads.filter((each) => each.image === image),
    paused: (image) => paused.includes(image),
    buildRequestedAt: (image) => requested[image],
    isBuilding: (image) => building.includes(image),
    lastBuildFailure: (image) => failures[image],
  };
}

/** Returns the rows of the table, without its borders. */
function rows(list: RecordList): readonly string[] {
  return toTable(list)
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.replace(/ +/g, ' '));
}

describe('the list of uploads', () => {
  const known = images({
    builds: [build({ id: 'b2' }), build({ id: 'b1' }), build({ image: 'centos' })],
    uploads: [
      upload({ build: 'b1', state: 'uploading', external_id: null, external_name: null, progress: 42 }),
      upload({ build: 'b2', provider: 'other' }),
      upload({ build: 'b2' }),
      upload({ image: 'centos' }),
    ],
  });

  it('has the columns that scripts expect, sorted by image, age of the build, and provider', () => {
    expect(rows(imageList(known, SOON))).toEqual([
      '| Build ID | Upload ID | Provider | Image | Provider Image Name | Provider Image ID | State | Age |',
      '| b1 | 0000000001 | cloud | centos | debian-1795 | image-1 | ready | 00:00:01:02 |',
      '| b2 | 0000000001 | cloud | debian | debian-1795 | image-1 | ready | 00:00:01:02 |',
      '| b2 | 0000000001 | other | debian | debian-1795 | image-1 | ready | 00:00:01:02 |',
      '| b1 | 0000000001 | cloud | debian | | | uploading | 00:00:01:02 |',
    ]);
  });

  it('shows a ready upload as missing while its image is not in the cloud', () => {
    const states = (['ready', 'deleting'] as const).flatMap((state) =>
      [false, true, undefined].map((listed) => upload({ state, ...(listed === undefined ? {} : { listed }) })),
    );
    const listed = imageList(images({ builds: [build({})], uploads: states }), SOON);
    const shown = toJsonObjects(listed).map(({ state }) => state);
    expect(shown).toEqual(['gone', 'ready', 'ready', 'deleting', 'deleting', 'deleting']);
    expect(rows(listed)[1]).toContain('| image-1 | gone |');
  });

  it('has every field in JSON, the age as the Unix time of the last change', () => {
    const listed = toJsonObjects(imageList(known, ALL));
    expect(listed[0]).toEqual({
      id: 'b1',
      upload_id: '0000000001',
      provider: 'cloud',
      image: 'centos',
      external_name: 'debian-1795',
      external_id: 'image-1',
      state: 'ready',
      age: 1_795_173_715,
      progress: null,
      ...{ stage: null, stage_age: null, stage_by: null, stage_reason: null },
    });
    expect(listed[3]).toMatchObject({ state: 'uploading', progress: 42 });
    expect(rows(imageList(known, ALL))[4]).toMatch(/\| 42 % \| \| \| \| \|$/);
  });
});

describe('the list of builds', () => {
  const known = images({
    builds: [
      build({}),
      build({ id: 'b2', state: 'building' }),
      build({ image: 'old' }),
      build({ image: 'old', id: 'b3', state: 'deleting' }),
    ],
    paused: ['old'],
  });

  it('names a build like its files, and shows a pause', () => {
    expect(rows(dibImageList(known, SOON))).toEqual([
      '| ID | Image | Builder | Formats | State | Age |',
      '| debian-b1 | debian | nb01 | qcow2,raw | ready | 01:02:03:04 |',
      '| debian-b2 | debian | nb01 | qcow2,raw | building | 01:02:03:04 |',
      '| old-b1 | old | nb01 | qcow2,raw | paused | 01:02:03:04 |',
      '| old-b3 | old | nb01 | qcow2,raw | deleting | 01:02:03:04 |',
    ]);
  });

  it('has formats as an array in JSON', () => {
    expect(toJsonObjects(dibImageList(known, ALL))[0]).toEqual({
      id: 'debian-b1',
      image: 'debian',
      builder: 'nb01',
      formats: ['qcow2', 'raw'],
      state: 'ready',
      age: Math.floor(NOW / 1000 - 93_784),
    });
  });
});

describe('the status of images', () => {
  const known = images({
    builds: [build({})],
    paused: ['old'],
    requested: { debian: NOW / 1000 - 5, new: NOW / 1000 - 3600 },
    building: ['debian', 'old'],
  });

  it('shows a pause, and the state of the build request', () => {
    expect(rows(imageStatus(known, SOON))).toEqual([
      '| Image | Paused | Build Request | Build Request Age |',
      '| debian | False | building | 00:00:00:05 |',
      '| new | False | pending | 00:01:00:00 |',
      '| old | True | | |',
    ]);
    expect(toJsonObjects(imageStatus(known, ALL))[1]).toEqual({
      image: 'new',
      paused: false,
      build_request: 'pending',
      build_request_age: Math.floor(NOW / 1000 - 3600),
      last_failure: null,
      last_failure_age: null,
      last_failure_builder: null,
      last_failure_log: null,
    });
    expect(toJsonObjects(imageStatus(known, ALL))[2]).toMatchObject({ build_request: null, build_request_age: null });
  });

  it.each([
    ['a newer build is ready', build({ state_time: 200 }), null],
    ['an older build is ready', build({ state_time: 50 }), '/logs/b9.log'],
    ['a newer build is running', build({ state: 'building', state_time: 200 }), '/logs/b9.log'],
  ])('shows the last failed build when %s: %j', (_when, other, log) => {
    const failure = { time: 100, build: 'b9', builder: 'nb01', reason: 'exit', message: 'm', log: '/logs/b9.log' };
    const listed = images({ builds: [other], failures: { debian: failure } });
    expect(toJsonObjects(imageStatus(listed, ALL))).toEqual([expect.objectContaining({ last_failure_log: log })]);
  });
});
