/** Codec of `/nodepool/requests/<id>`. */

import { recordCodec, type Codec } from './codec.js';
import { isText, number, oneOf, text, textMap, texts, unknownState, value } from './fields.js';
import { REQUEST_STATES, type NodeRequest, type NodeRequestData } from '@nodepool/core';

export const requestCodec: Codec<{ readonly id: string }, NodeRequestData> = recordCodec<
  { readonly id: string },
  NodeRequestData
>({
  fields: {
    state: true,
    state_time: true,
    declined_by: true,
    decline_reasons: true,
    node_types: true,
    nodes: true,
    reuse: true,
    requestor: true,
    requestor_data: true,
    provider: true,
    relative_priority: true,
    event_id: true,
    created_time: true,
    tenant_name: true,
  },

  read(raw, { id }, changedAt): NodeRequest | string {
    const state = oneOf(raw.state, REQUEST_STATES);
    if (state === undefined) return unknownState(raw.state, REQUEST_STATES);
    const labels = raw.node_types;
    // Nodes are delivered in the order of the labels, so skipping a bad label would deliver the wrong nodes.
    if (!Array.isArray(labels) || !labels.every(isText)) return 'its "node_types" is not a list of label names';
    return {
      id,
      state,
      state_time: number(raw.state_time) ?? changedAt,
      node_types: labels,
      nodes: texts(raw.nodes),
      declined_by: texts(raw.declined_by),
      decline_reasons: textMap(raw.decline_reasons),
      reuse: raw.reuse !== false,
      requestor: text(raw.requestor),
      requestor_data: value(raw.requestor_data),
      provider: text(raw.provider),
      relative_priority: number(raw.relative_priority) ?? 0,
      event_id: text(raw.event_id),
      created_time: number(raw.created_time),
      tenant_name: text(raw.tenant_name),
    };
  },
});
