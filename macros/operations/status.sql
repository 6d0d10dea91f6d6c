{#- How it is about each mirrored table of the project. Nothing is changed, and Spark is not asked. -#}
{% macro mirror_status() %}
  {% do adapter.dispatch('mirror_status', 'dbt')() %}
{% endmacro %}

{% macro openmirroring__mirror_status() %}
  {%- for line in adapter.status_lines(graph.nodes.values()) -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
