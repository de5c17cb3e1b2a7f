import type { FastifyRequest } from 'fastify'
import type { App } from './app.ts'
import type { HttpObserver } from './dependencies.ts'

/** Before every other hook: what they do is part of the request. */
export function observeRequests(app: App, observe: HttpObserver): void {
  const watches = new WeakMap<FastifyRequest, ReturnType<HttpObserver>>()
  app.addHook('onRequest', (request, _reply, next) => {
    const { traceparent } = request.headers
    const watch = observe({
      id: request.id,
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    })
    watches.set(request, watch)
    watch.enter(next)
  })
  // What follows a body that had to be read is called by the socket, on some versions of Node in no context.
  app.addHook('preValidation', (request, _reply, next) => {
    const watch = watches.get(request)
    if (watch === undefined) next()
    else watch.enter(next)
  })
  app.addHook('onResponse', (request, reply, next) => {
    watches.get(request)?.answered(reply.statusCode, reply.elapsedTime / 1000)
    next()
  })
}
