/** Lint rules of this project. */
export default {
  meta: { name: 'threadwarden' },
  rules: {
    // Each item of a list that is spread into a call is an argument, and V8 has room on its stack for some 120,000 of them.
    'no-spread-arguments': {
      create: (context) => {
        const check = ({ arguments: items }) => {
          for (const node of items) {
            if (node.type === 'SpreadElement') context.report({ node, message: 'use a loop: callers choose how long lists are' })
          }
        }
        return { CallExpression: check, NewExpression: check }
      },
    },
  },
}
