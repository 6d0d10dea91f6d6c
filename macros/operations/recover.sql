{#- Bring what earlier runs have committed to its end, without building anything. -#}
{% macro mirror_recover() %}
  {% do adapter.dispatch('mirror_recover', 'dbt')() %}
{% endmacro %}

{% macro openmirroring__mirror_recover() %}
  {%- do mirror_report(adapter.recover(graph.nodes.values())) -%}
{% endmacro %}
