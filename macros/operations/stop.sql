{#- Stop the mirrored database. A new start begins anew with what is left in the landing zone, for every table.

    Args:
      confirm: the name of the mirrored database -#}
{% macro mirror_stop(confirm=none) %}
  {% do adapter.dispatch('mirror_stop', 'dbt')(confirm) %}
{% endmacro %}

{% macro openmirroring__mirror_stop(confirm) %}
  {%- for line in adapter.mirrored_database().stop(confirm) -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
