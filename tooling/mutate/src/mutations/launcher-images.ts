import { inPackage, type Mutation } from '../mutation.js';

const SIMULATION = ['tooling/sim/test/images.test.ts'];

/** Defects of the stages of images that only the rules of the simulation see, or see without knowing the code. */
const STAGES: readonly Mutation[] = [
  ...inPackage('packages/store', [
    {
      id: 'store-candidate-serves-requests',
      file: 'images/image-standing.ts',
      find: "(stage === 'promoted' ? promoted : others).push(upload);",
      replace: 'promoted.push(upload);',
      breaks: 'No request gets an image before it has passed its launch test.',
      tests: ['images/image-standing.test.ts'],
      elsewhere: SIMULATION,
    },
  ]),
  ...inPackage('packages/launcher', [
    {
      id: 'launcher-trial-without-launch-test',
      file: 'images/review-plan.ts',
      find: "if (review.stage === 'uploaded' && launchTest !== undefined) return { kind: 'test', upload: candidate };",
      replace: '',
      breaks: 'An image is launch-tested before requests use it.',
      tests: [],
      elsewhere: SIMULATION,
    },
  ]),
  ...inPackage('packages/builder', [
    {
      id: 'builder-previous-image-by-age',
      file: 'cleanup-plan.ts',
      find: 'const kept = [...pinned, current, previous, candidate,',
      replace: 'const kept = [...pinned, current, candidate,',
      breaks: 'The previous image is not deleted by age.',
      tests: [],
      elsewhere: SIMULATION,
    },
    {
      id: 'builder-earlier-pin',
      file: 'cleanup-plan.ts',
      find: 'const kept = [...pinned, current,',
      replace: 'const kept = [pinned.at(-1), current,',
      breaks: 'A pinned image is not deleted by age.',
      tests: ['image-tests.test.ts'],
    },
  ]),
];

const LAUNCHER: readonly Mutation[] = inPackage('packages/launcher', [
  {
    id: 'launcher-node-of-untested-image',
    file: 'requests/allocation.ts',
    find: ' || !pool.context.store.images.servesRequests(entry.node.image_id)',
    replace: '',
    breaks: 'A ready node of an image that serves no requests is not handed out.',
    tests: ['image-review-seeds.test.ts', 'image-reviews.test.ts'],
  },
  {
    id: 'launcher-launch-on-rejected-image',
    file: 'launch/image-trial.ts',
    find: 'const leaves = barred || ended?.candidate === true;',
    replace: 'const leaves = ended?.candidate === true;',
    breaks: 'A launch does not continue with a rejected image.',
    tests: ['image-reviews.test.ts'],
  },
  {
    id: 'launcher-failed-candidate',
    file: 'launch/image-trial.ts',
    find: 'const leaves = barred || ended?.candidate === true;',
    replace: 'const leaves = barred;',
    breaks: 'A launch that fails on a candidate continues with the current image.',
    tests: ['image-reviews.test.ts'],
  },
  {
    id: 'launcher-one-failed-launch-test',
    file: 'images/image-reviews.ts',
    find: 'if (failures < MAX_FAILURES) return { pauseMs: RETRY_MS };',
    replace: '',
    breaks: 'One failed launch test does not reject an image.',
    tests: ['image-reviews.test.ts'],
  },
  {
    id: 'canary-rejects-without-failure',
    file: 'images/canary-test.ts',
    find: 'if (hasFailed && ',
    replace: 'if (',
    breaks: 'An image of which no launch and no job has failed is not rejected.',
    tests: ['canary-test.test.ts'],
  },
  {
    id: 'launcher-observation-twice',
    file: 'images/canary-test.ts',
    find: 'if (trial.counted[key] !== undefined) return trial;',
    replace: '',
    breaks: 'An observation of a trial counts once.',
    tests: ['canary-test.test.ts'],
  },
  {
    id: 'launcher-trial-without-share',
    file: 'images/canary-test.ts',
    find: '(share * ofCandidate) / (share * ofCandidate + (1 - share) * ofCurrent)',
    replace: 'ofCandidate / (ofCandidate + ofCurrent)',
    breaks: 'A trial rejects an equal image as rarely as configured.',
    tests: ['canary-test.test.ts'],
  },
]);

export const IMAGES: readonly Mutation[] = [...STAGES, ...LAUNCHER];
