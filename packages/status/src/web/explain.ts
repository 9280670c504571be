/** `/explain/request/ID`, `/explain/node/ID`, `/explain/label/NAME`: explains the current state, as JSON or text. */

import { answerFormat, sendError, type HttpReply, type HttpRequest, type Route } from '@nodepool/daemon/web';
import type { DecisionSubject } from '../facts/decisions.js';
import { explainLabel } from '../explain/explain-label.js';
import { explainNode } from '../explain/explain-node.js';
import { explainRequest } from '../explain/explain-request.js';
import { explanationText, type Explanation } from '../explain/explanation-text.js';
import type { ExplanationSources } from '../explain/explanation.js';
import type { WebRoutes } from './context.js';

const EXPLAIN: Readonly<Record<DecisionSubject, (sources: ExplanationSources, id: string) => Explanation | undefined>> =
  {
    request: explainRequest,
    node: explainNode,
    label: explainLabel,
  };

export const explainRoutes: WebRoutes = (app, { store, clock, explain }) => {
  if (explain === undefined) return;
  const sources = { store, clock, ...explain };
  for (const [kind, explainIt] of Object.entries(EXPLAIN)) {
    app.get<Route>(`/explain/${kind}/*`, (request, reply) => {
      const id = request.params['*'] ?? '';
      const explanation = explainIt(sources, id);
      if (explanation !== undefined) return answer(request, reply, explanation, clock.now());
      const hint = store.complete ? '' : '; the launcher does not see all records at the moment';
      return sendError(
        request,
        reply,
        404,
        `there is no ${kind} ${JSON.stringify(id)}, and this launcher remembers none${hint}`,
      );
    });
  }
};

function answer(request: HttpRequest, reply: HttpReply, explanation: Explanation, now: number): HttpReply {
  void reply.headers({ 'Access-Control-Allow-Origin': '*', 'Cache-Control': 'no-store', Vary: 'Accept' });
  if (answerFormat(request.headers.accept) === 'json') return reply.send(explanation);
  return reply.type('text/plain; charset=UTF-8').send(explanationText(explanation, now));
}
