/** Problems of disk images and their builders. */

import type { ImageStatus, Problem, ReasonGroup, UploadStatus } from '../../client/model.js';
import { counted, effectOf, type ProblemSources } from './sources.js';

export function imageProblems({ images, reasons, builders, failed, now }: ProblemSources): Problem[] {
  const problems = images.flatMap((image) => [
    ...[imageProblem(image, { reasons, failed, now }) ?? []].flat(),
    ...reviewProblems(image, now),
    ...withoutBuilder(image, builders),
  ]);
  if (images.length > 0 && builders.length === 0) {
    problems.push({
      kind: 'builders',
      severity: 'warning',
      key: 'builders',
      title: 'No builder is registered',
      subject: null,
      since: null,
      cause: 'image',
      details: [],
      effect: 'images are neither built nor uploaded',
      remedy: 'Start nodepool-builder.',
    });
  }
  return problems;
}

/** Returns the problem of an image whose build is requested and that no registered builder builds. */
function withoutBuilder({ name, requested, paused }: ImageStatus, builders: ProblemSources['builders']): Problem[] {
  if (requested === null || paused || builders.length === 0) return [];
  if (builders.some(({ images }) => images === undefined || images.includes(name))) return [];
  return [
    {
      kind: 'builders',
      severity: 'warning',
      key: `builder of ${name}`,
      title: `No registered builder builds the image ${name}, whose build is requested`,
      subject: { kind: 'image', id: name },
      since: requested,
      cause: 'image',
      details: [],
      effect: 'the requested build does not start',
      remedy: 'Start the builder of the image, or add the image to the configuration of one.',
    },
  ];
}

function imageProblem(
  image: ImageStatus,
  { reasons, failed, now }: Pick<ProblemSources, 'reasons' | 'failed' | 'now'>,
): Problem | undefined {
  const { name, labels, uploads, builds, lastFailure } = image;
  const common = {
    key: `image ${name}`,
    subject: { kind: 'image', id: name },
    cause: 'image',
    details: lastFailure === null ? [] : [lastFailure.text],
  } as const;
  const isBuilding = builds[0]?.state === 'building';
  const log =
    lastFailure === null || lastFailure.log === null
      ? 'Read the log of the builder.'
      : `Read ${lastFailure.log} on ${lastFailure.builder ?? 'the builder'}.`;
  const remedy = isBuilding
    ? `${log} A new build is running.`
    : `${log} \`nodepool image-build ${name}\` starts a build.`;
  if (labels.length > 0 && !uploads.some(isUsable)) {
    const waiting = waitingForLabels(reasons, labels);
    const refused = labels.flatMap((label) => failed.get(label) ?? []);
    const failures = refused.reduce((sum, { count }) => sum + count, 0);
    const times = [...waiting.map(({ oldest }) => oldest), ...refused.map(({ first }) => first)];
    const effects = [
      effectOf(waiting.reduce((sum, { count }) => sum + count, 0)),
      failures === 0 ? null : `${counted(failures, 'request')} for it failed`,
    ].filter((effect) => effect !== null);
    return {
      ...common,
      kind: 'image-missing',
      severity: effects.length > 0 ? 'critical' : 'warning',
      title: `Image ${name} is missing`,
      since: times.length === 0 ? missingSince(image) : Math.min(...times),
      effect: effects.length > 0 ? effects.join(', ') : `${counted(labels.length, 'label')} cannot be served`,
      remedy: uploads.some(({ state }) => state === 'uploading') ? 'An upload is in progress.' : remedy,
    };
  }
  const newest = builds.find(({ state }) => state === 'ready')?.since;
  const failure = failureOf(image);
  if (failure !== null) {
    return {
      ...common,
      kind: 'image-build',
      severity: 'warning',
      title: `The last build of image ${name} failed`,
      since: failure.time,
      effect: newest === undefined ? null : `nodes use a build that is ${ageOf(now - newest)} old`,
      remedy,
    };
  }
  return failedUpload(image);
}

/**
 * Returns the earliest time at which the image is known to be missing: a build request, the failure of the last build,
 * or a build or upload that is not ready. Returns null if there is none.
 */
function missingSince(image: ImageStatus): number | null {
  const unready = [...image.builds, ...image.uploads].filter(({ state }) => state !== 'ready');
  const times = [image.requested, failureOf(image)?.time ?? null, ...unready.map(({ since }) => since)];
  const known = times.filter((time) => time !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** Returns the failure of the last build unless a newer build has succeeded. */
function failureOf({ builds, lastFailure }: ImageStatus): ImageStatus['lastFailure'] {
  const newest = builds.find(({ state }) => state === 'ready')?.since;
  return newest !== undefined && newest > (lastFailure?.time ?? Infinity) ? null : lastFailure;
}

function ageOf(seconds: number): string {
  return seconds < 2 * 86_400
    ? counted(Math.round(seconds / 3600), 'hour')
    : counted(Math.round(seconds / 86_400), 'day');
}

/** An upload that failed after the newest usable one of its provider. */
function failedUpload({ name, uploads }: ImageStatus): Problem | undefined {
  const failed = uploads.find(
    ({ provider, state, since }) =>
      state === 'failed' &&
      !uploads.some((other) => other.provider === provider && other.state === 'ready' && other.since > since),
  );
  if (failed === undefined) return undefined;
  return {
    kind: 'image-upload',
    severity: 'warning',
    key: `upload ${name} ${failed.provider}`,
    title: `The upload of image ${name} to ${failed.provider} failed`,
    subject: { kind: 'image', id: name },
    since: failed.since,
    cause: 'image',
    details: failed.failure === null ? [] : [failed.failure],
    effect: 'nodes of this provider use an older build',
    remedy: 'The builder tries again. See its log for the answer of the cloud.',
  };
}

/** Returns true if nodes can be launched from the upload. */
function isUsable({ state, failure, review }: UploadStatus): boolean {
  const isBarred = review?.standing === 'rejected' || review?.standing === 'revoked';
  return state === 'ready' && failure === null && !isBarred;
}

/** Time (seconds) after which a stage of a review needs the attention of an operator. */
const LONG_STAGE_SECONDS = 86_400;
const WAITING = ['uploaded', 'launch-tested', 'canary'];

/** Returns the rejected uploads that are newer than the current one of their provider, and tests that last long. */
function reviewProblems({ name, uploads }: ImageStatus, now: number): Problem[] {
  const isNewest = ({ provider, since }: UploadStatus): boolean =>
    !uploads.some(
      (other) => other.provider === provider && other.review?.standing === 'current' && other.since > since,
    );
  return uploads.filter(isNewest).flatMap((upload): Problem[] => {
    const { provider, build, review } = upload;
    if (review === null) return [];
    const common = {
      subject: { kind: 'image', id: name },
      since: review.since,
      cause: 'image',
      details: [`build ${build}: ${review.reason}`],
    } as const;
    if (review.standing === 'rejected' || review.standing === 'revoked') {
      return [
        {
          ...common,
          kind: 'image-rejected',
          severity: 'warning',
          key: `rejected ${name} ${provider} ${build}`,
          title: `The new image ${name} is ${review.standing} at ${provider}`,
          effect: effectOnRequests(uploads, upload),
          remedy: `Repair the image and request a build, or \`nodepool image promote ${name} --provider ${provider} --build ${build}\`.`,
        },
      ];
    }
    // A pin stops the tests on purpose.
    const isPinned = uploads.some((other) => other.provider === provider && (other.review?.pinned ?? null) !== null);
    if (isPinned || !WAITING.includes(review.standing) || now - review.since < LONG_STAGE_SECONDS) return [];
    return [
      {
        ...common,
        kind: 'image-waits',
        severity: 'warning',
        key: `waits ${name} ${provider} ${build}`,
        title: `The new image ${name} has been in the stage ${review.standing} at ${provider} for a day`,
        effect: effectOnRequests(uploads, upload),
        remedy: `\`nodepool image promote ${name} --provider ${provider}\` ends its tests; \`nodepool explain label\` shows if no nodes are launched.`,
      },
    ];
  });
}

/** Returns the effect of an upload that serves no requests: they use another upload, or wait. */
function effectOnRequests(uploads: readonly UploadStatus[], { provider, build }: UploadStatus): string {
  const others = uploads.filter((other) => other.provider === provider && other.build !== build);
  if (others.some(isServing)) return 'nodes of this provider use an older build';
  const tested = uploads.find((other) => other.provider === provider && WAITING.includes(other.review?.standing ?? ''));
  const until = tested === undefined ? 'another build is uploaded' : `build ${tested.build} has passed its tests`;
  return `there is no older build: requests for its labels get no node of this provider until ${until}`;
}

/** Returns true if requests get the upload. */
function isServing({ review, state, failure }: UploadStatus): boolean {
  return state === 'ready' && failure === null && (review === null || review.standing === 'current');
}

/** Returns the groups of requests that wait for the image of a label. */
function waitingForLabels(reasons: readonly ReasonGroup[], labels: readonly string[]): readonly ReasonGroup[] {
  return reasons.filter(
    ({ phase, labels: wanted }) => phase === 'image' && wanted.some((label) => labels.includes(label)),
  );
}
