/** The documents of the status pages by view, for the stream of the page and for `/status/v1`. */

import type { Observed } from './sources.js';
import { capacityDocument } from './capacity.js';
import { githubDocument } from './github.js';
import { imageDocument, imagesDocument } from './images.js';
import { labelDocument, labelsDocument } from './labels.js';
import { NODE_LIST, nodeDocument, nodesDocument } from './nodes.js';
import { launcherStatus, overviewDocument } from './overview.js';
import type { ListParameters, Parameters } from './parameters.js';
import { programsDocument } from './programs.js';
import { providerDocument, providersDocument } from './providers.js';
import { REQUEST_LIST, requestDocument, requestsDocument } from './requests.js';

export { readParameters, type Parameters } from './parameters.js';

interface View {
  /** Returns undefined if the subject does not exist. */
  readonly make: (observed: Observed, parameters: Parameters) => object | undefined;
  /** True if the view has a subject, whose id follows the name of the view. */
  readonly hasSubject: boolean;
  readonly list: ListParameters;
}

const NO_LIST: ListParameters = { filters: [], states: [], sorts: [] };

const list = (make: View['make'], parameters = NO_LIST): View => ({ make, hasSubject: false, list: parameters });
const subject = (make: View['make']): View => ({ make, hasSubject: true, list: NO_LIST });

/** The views by name, e.g. `nodes` or `node`. */
export const VIEWS: ReadonlyMap<string, View> = new Map([
  ['overview', list(overviewDocument)],
  ['labels', list(labelsDocument)],
  ['label', subject(labelDocument)],
  ['providers', list(providersDocument)],
  ['provider', subject(providerDocument)],
  ['requests', list(requestsDocument, REQUEST_LIST)],
  ['request', subject(requestDocument)],
  ['nodes', list(nodesDocument, NODE_LIST)],
  ['node', subject(nodeDocument)],
  ['images', list(imagesDocument)],
  ['image', subject(imageDocument)],
  ['components', list(programsDocument)],
  ['github', list(githubDocument)],
  ['capacity', list(capacityDocument)],
]);

/** Returns the document with the member `launcher`; undefined if the view or its subject does not exist. */
export function documentOf(observed: Observed, view: string, parameters: Parameters): object | undefined {
  const document = VIEWS.get(view)?.make(observed, parameters);
  return document === undefined ? undefined : { launcher: launcherStatus(observed), ...document };
}
