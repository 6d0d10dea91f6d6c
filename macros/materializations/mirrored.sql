{#- Tables, incremental models, seeds and dbt snapshots: what happens, the hooks included, is in
    dbt/adapters/openmirroring/node/materialize.py. -#}
{% macro mirror_materialization(is_view=false) %}
  {{ return({'relations': [adapter.materialize(context, is_view)]}) }}
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

{% materialization view, adapter='openmirroring' %}
  {#- dbt gives it tables too: the latest versions of models, of which it makes a view -#}
  {%- if target.dry_run -%}{{ return(mirror_materialization(is_view=true)) }}{%- endif -%}
  {%- do mirror_run_hooks_outside(pre_hooks) -%}
  {%- set result = create_or_replace_view() -%}
  {%- do mirror_run_hooks_outside(post_hooks) -%}
  {{ return(result) }}
{% endmaterialization %}

{#- Hooks outside of a transaction. dbt leaves them out here, or begins them with a `commit`, which Spark does not know. -#}
{% macro mirror_run_hooks_outside(hooks) %}
  {%- for hook in hooks | rejectattr('transaction') -%}
    {%- do run_query(render(hook.sql)) -%}
  {%- endfor -%}
{% endmacro %}
