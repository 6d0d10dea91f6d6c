{#- Tables, incremental models, seeds and dbt snapshots: what happens between the hooks is in
    dbt/adapters/openmirroring/node/materialize.py. -#}
{% macro mirror_materialization() %}
  {{ run_hooks(pre_hooks) }}
  {%- set target = adapter.materialize(context) -%}
  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [target]}) }}
{% endmacro %}


{% materialization table, adapter='openmirroring', supported_languages=['sql', 'python'] %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}

{% materialization incremental, adapter='openmirroring', supported_languages=['sql', 'python'] %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}

{% materialization seed, adapter='openmirroring' %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}

{% materialization snapshot, adapter='openmirroring' %}
  {{ return(mirror_materialization()) }}
{% endmaterialization %}
