{{/* Values that would lose or open threads. Each message says what to do. */}}
{{- define "threadwarden.refusals" -}}
{{- $config := .Values.config -}}
{{- $ownership := default (dict) $config.ownership -}}
{{- $mode := dig "authentication" "mode" "required" $config -}}
{{- $sqlite := include "threadwarden.isSqlite" . -}}

{{- if not $ownership.unknownThread -}}
{{- fail "config.ownership.unknownThread is missing. Set it to claim if the runtime has no threads yet, otherwise to verify or deny: docs/how-to/authorize/unknown-threads.md" -}}
{{- end -}}
{{- if and (ne $mode "off") (not (dig "authentication" "issuers" nil $config)) -}}
{{- fail "config.authentication.issuers is missing. Set the issuer, the audiences and the algorithms of your tokens: docs/how-to/connect/identity-providers.md" -}}
{{- end -}}
{{- if not (or $config.upstream $config.upstreams $config.agents) -}}
{{- fail (printf "config.upstream is missing. Set %sconfig.upstream.basePath" (ternary "config.upstream.url to the Service of the runtime, and " "" (eq .Values.topology "standalone"))) -}}
{{- end -}}

{{- if and .Values.migrate (eq (default "enforce" $config.enforcement) "enforce") -}}
{{- $all := list $ownership.unknownThread -}}
{{- range $key, $one := merge (dict) (default (dict) $config.upstreams) (default (dict) $config.agents) -}}
{{- $all = append $all $one.unknownThread -}}
{{- end -}}
{{- if has "claim" $all -}}
{{- fail "unknownThread: claim together with migrate: true would give each old thread to the first user who runs it. Set config.enforcement to observe and import the owners (docs/how-to/operate/migrate.md), or set config.ownership.unknownThread to verify or deny. Set migrate to false when all old threads have an owner" -}}
{{- end -}}
{{- end -}}

{{- if $sqlite -}}
{{- if .Values.autoscaling.enabled -}}
{{- fail "autoscaling.enabled needs PostgreSQL, because a SQLite file belongs to one pod. Set config.ownership.store to postgres://USER@HOST/DATABASE, or autoscaling.enabled to false" -}}
{{- end -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- fail (printf "replicas: %d needs PostgreSQL, because a SQLite file belongs to one pod. Set config.ownership.store to postgres://USER@HOST/DATABASE, or replicas to 1" (int .Values.replicas)) -}}
{{- end -}}
{{- if not .Values.persistence.enabled -}}
{{- fail "A SQLite store without a volume forgets who owns which thread when the pod ends. Set persistence.enabled to true, or config.ownership.store to postgres://USER@HOST/DATABASE" -}}
{{- end -}}
{{- if not (hasPrefix "sqlite:/data/" (default "" $ownership.store)) -}}
{{- fail "The SQLite file is not on the volume. Set config.ownership.store to sqlite:/data/ownership.db" -}}
{{- end -}}
{{- end -}}

{{- if ne .Values.runtime.service.type "ClusterIP" -}}
{{- fail (printf "runtime.service.type: %s makes the runtime public, so that callers bypass the gateway. Set it to ClusterIP, and publish the gateway with service, ingress or httpRoute" .Values.runtime.service.type) -}}
{{- end -}}
{{- if eq .Values.topology "sidecar" -}}
{{- if .Values.runtime.service.create -}}
{{- fail "runtime.service.create with topology: sidecar would let callers bypass the gateway. Set it to false: the gateway reaches the runtime on 127.0.0.1" -}}
{{- end -}}
{{- if not .Values.runtime.container.image -}}
{{- fail "runtime.container.image is missing. Set the container of your runtime, or topology to standalone if it has a Deployment of its own" -}}
{{- end -}}
{{- if .Values.runtime.container.ports -}}
{{- fail "runtime.container.ports publishes the runtime, so that callers bypass the gateway. Remove it, and let the runtime listen on 127.0.0.1" -}}
{{- end -}}
{{- $url := dig "upstream" "url" "" $config -}}
{{- if and $url (not (include "threadwarden.isLoopback" $url)) -}}
{{- fail (printf "config.upstream.url: %s is not in the pod. With topology: sidecar, remove it, and set runtime.port if the runtime does not listen on 4000" $url) -}}
{{- end -}}
{{- else -}}
{{- if .Values.runtime.container -}}
{{- fail "runtime.container has no effect with topology: standalone. Set topology to sidecar, or remove it" -}}
{{- end -}}
{{- if and .Values.runtime.service.create (not .Values.runtime.selector) -}}
{{- fail "runtime.service.create needs runtime.selector. Set it to the labels of the runtime's pods" -}}
{{- end -}}
{{- range $label, $value := .Values.runtime.selector -}}
{{- if and (eq $label "app.kubernetes.io/instance") (eq $value $.Release.Name) (eq (get $.Values.runtime.selector "app.kubernetes.io/name") (default $.Chart.Name $.Values.nameOverride)) -}}
{{- fail "runtime.selector selects the gateway itself. Set it to the labels of the runtime's pods" -}}
{{- end -}}
{{- end -}}
{{- range $key, $one := merge (dict "upstream" (default (dict) $config.upstream)) (default (dict) $config.upstreams) (default (dict) $config.agents) -}}
{{- $host := (urlParse (default "" $one.url)).host | regexFind "^[^:]*" -}}
{{- $names := splitList "." $host -}}
{{- $namespace := ternary (index (append $names "") 1) $.Release.Namespace (gt (len $names) 1) -}}
{{- /* In another namespace, the user of Helm may not be allowed to read Services, and lookup would fail. */ -}}
{{- if eq $namespace $.Release.Namespace -}}
{{- $service := lookup "v1" "Service" $namespace (first $names) -}}
{{- if has (dig "spec" "type" "ClusterIP" $service) (list "LoadBalancer" "NodePort") -}}
{{- fail (printf "The Service %s of the runtime is a %s, so that callers bypass the gateway. Change its type to ClusterIP, or use a second Service of type ClusterIP and delete this one" (first $names) $service.spec.type) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- $listenTls := default (dict) $config.listen.tls -}}
{{- if .Values.tls.secretName -}}
{{- if or $listenTls.certificateFile $listenTls.keyFile -}}
{{- fail "tls.secretName and config.listen.tls both name the certificate. Remove certificateFile and keyFile from config.listen.tls: the chart sets them to the files of the Secret" -}}
{{- end -}}
{{- if and .Values.certificate.enabled .Values.tls.certificate.enabled (eq .Values.tls.secretName .Values.certificate.secretName) -}}
{{- fail (printf "certificate and tls.certificate would both write the Secret %s. Set tls.secretName to another name" .Values.tls.secretName) -}}
{{- end -}}
{{- else -}}
{{- if .Values.tls.certificate.enabled -}}
{{- fail "tls.certificate.enabled needs tls.secretName. Set it to the name of the Secret that cert-manager makes" -}}
{{- end -}}
{{- if and (hasKey $config.listen "tls") (not (and $listenTls.certificateFile $listenTls.keyFile)) -}}
{{- fail "config.listen.tls has no certificate. Set tls.secretName, or certificateFile and keyFile in config.listen.tls" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.tls.certificate.enabled (not .Values.tls.certificate.issuerRef.name) -}}
{{- fail "tls.certificate.issuerRef.name is missing. Set it to an issuer of cert-manager for names inside the cluster, which a public CA does not sign" -}}
{{- end -}}
{{- $backendCa := .Values.httpRoute.backendCa -}}
{{- if and (or $backendCa.configMap $backendCa.hostname) (not (include "threadwarden.isTls" .)) -}}
{{- fail "httpRoute.backendCa needs TLS in the gateway. Set tls.secretName, or remove httpRoute.backendCa" -}}
{{- end -}}
{{- if and (or $backendCa.configMap $backendCa.hostname) (not .Values.httpRoute.enabled) -}}
{{- fail "httpRoute.backendCa has no effect without httpRoute.enabled. Set httpRoute.enabled to true, or remove it" -}}
{{- end -}}
{{- if and $backendCa.hostname (not $backendCa.configMap) -}}
{{- fail "httpRoute.backendCa.configMap is missing. Set it to a ConfigMap with ca.crt" -}}
{{- end -}}

{{- $delay := dig "shutdown" "delay" "5s" $config -}}
{{- $grace := int (include "threadwarden.gatewayGrace" .) -}}
{{- if regexMatch "^[0-9]+s$" $delay -}}
{{- if ge (int (trimSuffix "s" $delay)) (sub $grace 5 | int) -}}
{{- fail (printf "config.shutdown.delay: %s leaves no time to end streams. Set terminationGracePeriodSeconds to more than %d" $delay (add (int (trimSuffix "s" $delay)) 5 (sub (int .Values.terminationGracePeriodSeconds) $grace))) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The time in which the gateway drains. */}}
{{- define "threadwarden.gatewayGrace" -}}
{{- sub (int .Values.terminationGracePeriodSeconds) (ternary 15 0 (eq .Values.topology "sidecar")) -}}
{{- end -}}
