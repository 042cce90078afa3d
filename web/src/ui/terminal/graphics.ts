// Whether a graphics card draws. Without one, some browsers compute WebGL pixel by pixel on the processor:
// it works, and takes several times as long as plain elements do. They reveal it only by the name of the renderer.

const COMPUTED = /swiftshader|llvmpipe|softpipe|software|basic render/i

let known: boolean | undefined

export function hasGraphicsCard(): boolean {
  known ??= look()
  return known
}

function look(): boolean {
  const gl = document.createElement('canvas').getContext('webgl2')
  if (!gl) return false
  const names = gl.getExtension('WEBGL_debug_renderer_info')
  const drawer = String(gl.getParameter(names ? names.UNMASKED_RENDERER_WEBGL : gl.RENDERER))
  gl.getExtension('WEBGL_lose_context')?.loseContext() // a page has only so many of them
  return !COMPUTED.test(drawer)
}
