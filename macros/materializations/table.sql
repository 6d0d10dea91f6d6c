{#- A mirrored table. Its options are in the README, "Configuration of a node". -#}
{% materialization table, adapter='openmirroring', supported_languages=['sql', 'python'] %}
  {%- set target = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {%- do mirror_table(target, compiled_code) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}
