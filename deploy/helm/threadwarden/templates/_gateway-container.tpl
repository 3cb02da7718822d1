{{- define "threadwarden.container" -}}
name: threadwarden
image: {{ include "threadwarden.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- if eq .Values.topology "sidecar" }}
restartPolicy: Always
{{- end }}
env:
  - name: TERMINATION_GRACE_PERIOD_SECONDS
    value: {{ include "threadwarden.gatewayGrace" . | quote }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
ports:
  - name: gateway
    containerPort: {{ int .Values.config.listen.port }}
  - name: health
    containerPort: {{ int .Values.config.health.port }}
{{- /* The runtime of a sidecar starts when this probe succeeds, so it must not be /readyz, which waits for the runtime. */}}
startupProbe:
  httpGet: { path: /startupz, port: health }
  periodSeconds: 1
  failureThreshold: 60
livenessProbe:
  httpGet: { path: /livez, port: health }
  timeoutSeconds: 5
readinessProbe:
  httpGet: { path: /readyz, port: health }
  periodSeconds: 2
  timeoutSeconds: 5
{{- if eq .Values.topology "sidecar" }}
{{- /* The kubelet runs all preStop hooks at once, and sends SIGTERM to a native sidecar last. */}}
lifecycle:
  preStop:
    exec:
      command: [node, --eval, "process.kill(1, 'SIGTERM')"]
{{- end }}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
volumeMounts:
  - name: threadwarden-config
    mountPath: /etc/threadwarden
    readOnly: true
  {{- if .Values.existingSecret }}
  - name: threadwarden-secrets
    mountPath: /etc/threadwarden/secrets
    readOnly: true
  {{- end }}
  {{- if .Values.tls.secretName }}
  - name: threadwarden-tls
    mountPath: /etc/threadwarden/tls
    readOnly: true
  {{- end }}
  {{- if include "threadwarden.isSqlite" . }}
  - name: threadwarden-data
    mountPath: /data
  {{- end }}
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "threadwarden.runtimeContainer" -}}
{{- $poll := printf "const poll = () => fetch('http://127.0.0.1:%d/livez').then(() => setTimeout(poll, 250), () => {})\npoll()\n" (int .Values.config.health.port) -}}
{{- $defaults := dict
  "name" "runtime"
  "securityContext" (dict "allowPrivilegeEscalation" false "runAsNonRoot" true "capabilities" (dict "drop" (list "ALL")) "seccompProfile" (dict "type" "RuntimeDefault"))
  "lifecycle" (dict "preStop" (dict "exec" (dict "command" (list "node" "--eval" $poll)))) -}}
{{- $container := deepCopy .Values.runtime.container -}}
{{- /* A hook of the values replaces the whole hook: two handlers in one would be invalid. */ -}}
{{- if dig "lifecycle" "preStop" nil $container -}}
{{- $_ := unset $defaults "lifecycle" -}}
{{- end -}}
{{- toYaml (mergeOverwrite $defaults $container) -}}
{{- end -}}
