{#- A mirrored incremental model: what its new rows do to the snapshot is in macros/mirror/incremental.sql. -#}
{% materialization incremental, adapter='openmirroring', supported_languages=['sql', 'python'] %}
  {%- set target = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {%- do mirror_table(target, compiled_code) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
