{{ automate_dv.hub(
    src_pk='customer_hk', src_nk='customer_id', src_ldts='loaded', src_source='source',
    source_model='stage_orders'
) }}
