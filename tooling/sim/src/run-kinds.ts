/**
 * Kinds of runs, by their faults: `all` in sequence; `nothing`; only a cloud `quota`, at a site with one provider; or a
 * defective `driver` of one provider during the whole run, while all requests use another provider; `refusals` of one
 * provider's cloud, while another provider has capacity; `losses` of instances of ready nodes; or `ids` that the cloud
 * uses again, while launchers are killed and instances disappear; or `slots`: nodes on backing nodes, while launchers
 * are killed and instances disappear; or `images`: nodes of built images with tests, some of them bad, while launchers
 * and builders are killed and operators decide about images; or `shares`: no fault, and more demand than capacity at a
 * site with fair shares.
 */
export const RUN_KINDS = [
  'all',
  'nothing',
  'quota',
  'driver',
  'refusals',
  'losses',
  'ids',
  'slots',
  'images',
  'shares',
] as const;

export type RunKind = (typeof RUN_KINDS)[number];
