/** Rewrites the answers of a LangGraph server that do not pass as they come: searches for threads, and copies. */
import type { Rewriter } from '../lists/rewriter.ts'
import { makeCopyThread, type CopyParts } from './copy.ts'
import { makeThreadSearch, type SearchParts } from './search.ts'

export function makeLangGraphRewriter(parts: SearchParts & CopyParts): Rewriter {
  const threads = makeThreadSearch(parts)
  const copy = makeCopyThread(parts)
  return {
    hasOperation: () => false,
    rewrites({ permit }) {
      const { route } = permit.descriptor
      return route.id === 'langgraph/threads/search' || route.id === 'langgraph/threads/count' || route.copiesThread === true
    },
    rewrite(request, memory) {
      const { route } = request.permit.descriptor
      if (route.copiesThread === true) return copy(request, memory)
      return route.id === 'langgraph/threads/count' ? threads.count(request, memory) : threads.search(request, memory)
    },
  }
}
